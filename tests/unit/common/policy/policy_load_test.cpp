// common/policy/policy_load.hpp: from YAML to a checked policy.
#include "common/policy/policy_load.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_load_test {

namespace {

const std::string head = "version: 1\n";
const std::string alice = "users:\n  alice:\n    roots: [~/projects]\n";

// The policy is valid but for the lines in `extra`.
std::string problems_with(const std::string &extra)
{
    return problems_of(head + alice + extra);
}

} // namespace

TEST_CASE("a policy of one user and one root has every default")
{
    const auto policy = parse(head + alice);
    CHECK(policy.agent.binary == "/usr/lib/pi-agent/agent/bin/pi");
    CHECK(policy.agent.user == "pi-agent");
    CHECK(policy.agent.accounts == Accounts::unspecified);
    CHECK(policy.agent.create_user);
    CHECK(policy.wrapper.enable);
    CHECK(policy.wrapper.hide_direct_binary);
    CHECK(policy.documents.empty());
    REQUIRE(policy.users.size() == 1);
    CHECK(policy.users[0].name == "alice");
    CHECK(to_string(policy.users[0].where) == "p.yaml:3:3");
    REQUIRE(policy.users[0].roots.size() == 1);
    CHECK(policy.users[0].roots[0].text == "~/projects");
    CHECK(to_string(policy.users[0].roots[0].where) == "p.yaml:4:13");
}

TEST_CASE("reads everything that is supported today")
{
    const auto policy = parse(R"(version: 1
agent: {binary: /opt/pi/bin/pi, user: ai, group: ai, accounts: per-user, create_user: false, binary_name: pi, state_dir: /var/lib/pi-agent}
wrapper: {enable: true, command_name: pi, hide_direct_binary: false}
sandbox: {method: systemd}
projects: {paths: host, scope: root, ownership: idmap}
network: full
config: {}
users:
  alice:
    roots: [~/projects/, /srv/shared/app]
    config: /home/alice/.config/pi
    run_as: helper
    ssh: {key: .ssh/id_agent}
    signing: {key: /home/alice/.ssh/id_signing}
    env: {HTTP_PROXY: http://127.0.0.1:3128, EMPTY: ""}
  "%devs": {roots: [/srv/devs], config: .pi/other/}
settings: {a: [1, -2, 1.5, true, null, yes, "010"], b: {c: text}, d: [-0, 0]}
env: {EDITOR: nano}
)");
    CHECK(policy.agent.binary == "/opt/pi/bin/pi");
    CHECK(policy.agent.accounts == Accounts::per_user);
    CHECK_FALSE(policy.agent.create_user);
    CHECK_FALSE(policy.wrapper.hide_direct_binary);
    REQUIRE(policy.users.size() == 2);
    CHECK(policy.users[0].roots[0].text == "~/projects");
    CHECK(policy.users[0].run_as == "helper");
    CHECK(policy.users[0].ssh_key == ".ssh/id_agent");
    CHECK(policy.users[0].signing_key == "/home/alice/.ssh/id_signing");
    CHECK_FALSE(policy.users[1].ssh_key);
    CHECK(policy.users[0].env.at("HTTP_PROXY") == "http://127.0.0.1:3128");
    CHECK(policy.users[0].env.at("EMPTY").empty());
    CHECK(policy.users[1].is_group);
    CHECK(policy.users[1].name == "devs");
    CHECK(policy.users[1].config == ".pi/other");
    CHECK(nlohmann::json::parse(policy.documents.at("settings.json")) ==
          nlohmann::json::parse(R"({"a": [1, -2, 1.5, true, null, "yes", "010"], "b": {"c": "text"}, "d": [-0.0, 0]})"));
    CHECK(contains(policy.documents.at("settings.json"), "-0"));
    CHECK(policy.env.at("EDITOR") == "nano");
}

TEST_CASE("an ssh key is a file of the user's")
{
    const auto with = [](const std::string &ssh) {
        return problems_of(head + "users:\n  alice:\n    roots: [/srv/a]\n    ssh: " + ssh + "\n");
    };
    CHECK(with("{key: /srv/keys/alice}").empty());
    CHECK(contains(with("{key: ~/.ssh/id}"), "users.alice.ssh.key: '~/.ssh/id' begins with '~'"));
    CHECK(contains(with("{key: .ssh/}"), "is a directory"));
    CHECK(contains(with("{key: .ssh/../id}"), "users.alice.ssh.key"));
    CHECK(contains(with("{keys: .ssh/id}"), "users.alice.ssh.keys: unknown key; did you mean 'key'?"));
    CHECK(contains(with("{}"), "users.alice.ssh: names no key"));
    CHECK(contains(with(".ssh/id"), "users.alice.ssh: must be a mapping"));
}

TEST_CASE("every problem is reported at once, with file, line, column, key and remedy")
{
    const auto text = problems_of("version: 2\nagent: {usr: x, create_user: yes}\nusers: {alice: {roots: []}}\n");
    CHECK(contains(text, "p.yaml:1:10: version: is 2, which is newer than this pi-agent ("));
    CHECK(contains(text, "p.yaml:2:9: agent.usr: unknown key; did you mean 'user'?; known here: binary, user"));
    CHECK(contains(text, "p.yaml:2:30: agent.create_user: must be true or false, found the text 'yes'"));
    CHECK(contains(text, "p.yaml:3:24: users.alice.roots: is empty"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("the version must be said, once a policy")
{
    CHECK(contains(problems_of(alice), "p.yaml: version: missing"));
    CHECK(contains(problems_of("version: '1'\n" + alice), "version: must be the number 1"));
    CHECK(contains(problems_of("version: 01\n" + alice), "version: must be the number 1"));
    CHECK(contains(problems_of(""), "must be a mapping, found nothing"));
    CHECK(contains(problems_of("- a\n"), "must be a mapping, found a list"));
}

TEST_CASE("only true and false without quotes are booleans")
{
    for (const auto *word : {"yes", "no", "on", "True", "FALSE", "\"true\"", "1", "", "[true]", "{a: b}"}) {
        CHECK_MESSAGE(contains(problems_with(std::string("wrapper: {enable: ") + word + "}\n"), "wrapper.enable: must be true or false"),
                      word);
    }
}

TEST_CASE("a number or boolean is not text, and 010 is neither")
{
    for (const auto *word : {"8", "1.5", "true", "010", "True", "0x1F"}) {
        CHECK_MESSAGE(contains(problems_with(std::string("env: {A: ") + word + "}\n"), "env.A: must be text, found"), word);
    }
    CHECK(parse(head + alice + "env: {A: '010', B: yes}\n").env.at("B") == "yes");
    CHECK(contains(problems_with("settings: {a: 010}\n"), "p.yaml:5:15: settings.a: must be written as in JSON, found '010'"));
    CHECK(contains(problems_with("settings: {a: 99999999999999999999}\n"), "too large"));
    CHECK(contains(problems_with("settings: {a: 1e999}\n"), "too large"));
}

TEST_CASE("a wrong type names what was wanted and what was found")
{
    CHECK(contains(problems_with("agent: pi\n"), "p.yaml:5:8: agent: must be a mapping, found the text 'pi'"));
    CHECK(contains(problems_with("agent:\n"), "p.yaml:5:1: agent: must be a mapping, found nothing"));
    CHECK(contains(problems_of(head + "users: {alice: {roots: /srv/a}}\n"), "users.alice.roots: must be a list, found the text '/srv/a'"));
    CHECK(contains(problems_of(head + "users: {alice: {roots: 5}}\n"), "users.alice.roots: must be a list, found the number 5"));
    CHECK(contains(problems_of(head + "users: [alice]\n"), "users: must be a mapping, found a list"));
    CHECK(contains(problems_of(head + "users: {alice: }\n"), "users.alice: must be a mapping, found nothing"));
    CHECK(contains(problems_with("settings: [1]\n"), "settings: must be a mapping, found a list"));
    CHECK(contains(problems_with("env: {A: [x]}\n"), "env.A: must be text, found a list"));
}

TEST_CASE("nobody authorised is an error while the wrapper is on")
{
    CHECK(contains(problems_of(head), "p.yaml: users: nobody is authorised"));
    CHECK(contains(problems_of(head + "users: {}\n"), "users: nobody is authorised"));
    CHECK(contains(problems_of(head + "users: {alice: {}}\n"), "p.yaml:2:9: users.alice: has no roots"));
    CHECK(problems_of(head + "wrapper: {enable: false}\n").empty());
}

TEST_CASE("a root is absolute or below ~, plain, and no home itself")
{
    const auto problem = [](const std::string &root) { return problems_of(head + "users: {alice: {roots: ['" + root + "']}}\n"); };
    CHECK(contains(problem("/"), "users.alice.roots[0]: '/' is the whole file system"));
    CHECK(contains(problem("///"), "is the whole file system"));
    CHECK(contains(problem("~"), "is a home directory itself"));
    CHECK(contains(problem("~/"), "is a home directory itself"));
    CHECK(contains(problem("~bob/x"), "another user's home"));
    CHECK(contains(problem("projects"), "is not absolute"));
    CHECK(contains(problem(""), "is empty"));
    for (const auto *root : {"~/.ssh", "~/.ssh/x", "~/.config", "~/.local/share", "~/.pi", "~/.pi/agent", "~/.gnupg", "~/.aws", "~/.kube",
                             "~/.local/share/keyrings", "/home/alice/.ssh", "/srv/ci/.ssh/x", "/srv/ci/.config/gh"})
        CHECK_MESSAGE(contains(problem(root), "which no session is shown; name a directory of projects"), root);
    for (const auto *root : {"~/.dotfiles", "~/.config/nvim", "~/.local/src", "/srv/ssh", "/srv/.sshx", "~/projects/.ssh-tools"})
        CHECK_MESSAGE(problem(root).empty(), root);
    for (const auto *root : {"/srv//a", "/srv/../etc", "/srv/./a", "~/..", "~/../bob", "~//a", "/..", "//srv"})
        CHECK_MESSAGE(contains(problem(root), "holds '//', '.' or '..'"), root);
    for (const auto *root : {"/srv/a b", "/srv/%h", "/srv/$HOME", "/srv/a\\", "/srv/a\"", "/srv/ä", "/srv/~", "/srv/*", "/srv/a:b"}) {
        CHECK_MESSAGE(contains(problem(root), "users.alice.roots[0]: "), root);
        CHECK_MESSAGE(contains(problem(root), "show projects under an alias (projects.paths: alias)"), root);
        CHECK_MESSAGE(problems_of(head + "users: {alice: {roots: ['" + root + "']}}\nprojects: {paths: alias}\n").empty(), root);
    }
    CHECK(contains(problems_of(head + "users: {alice: {roots: [\"/srv/x\\nExecStopPost=+command\"]}}\n"),
                   "holds a control character: '/srv/x\\x0a"));
    CHECK(contains(problems_of(head + "users: {alice: {roots: [~]}}\n"), "is nothing, or the home directory itself (~)"));
    for (const auto *root : {"/srv/a", "~/p", "/srv/a.b=c@d-e_f", "/srv/..a", "~/.p"})
        CHECK_MESSAGE(problem(root).empty(), root);
}

TEST_CASE("a config directory may have any printable name but no way out")
{
    const auto problem = [](const std::string &config) {
        return problems_of(head + "users: {alice: {roots: [/srv/a], config: '" + config + "'}}\n");
    };
    for (const auto *config : {".pi/agent", "/etc/xdg/pi agent", "ä"})
        CHECK_MESSAGE(problem(config).empty(), config);
    for (const auto *config : {"", "/", "~/.pi", ".", "..", "a/../b", "a//b"})
        CHECK_FALSE_MESSAGE(problem(config).empty(), config);
    // An agent's home gets a copy of what is there.
    for (const auto *config : {".pi", ".claude/x", "/home/alice/.pi/agent", "/srv/.codex", ".config/pi", ".sshd"})
        CHECK_MESSAGE(problem(config).empty(), config);
    for (const auto *config : {".ssh", ".ssh/", ".ssh/x", ".config", ".aws/pi", "/home/alice/.ssh", "/home/alice/.gnupg/x", ".netrc"})
        CHECK_MESSAGE(contains(problem(config), "which no session is shown"), config);
}

TEST_CASE("names of users and groups are those of a user database, names of agents' accounts are plain")
{
    for (const auto *name : {"'0x0'", "'1000'", "'%'", "'a/b'", "'%%x'", "''", "'#1000'", "\"a\\n\"", "'a,b'", "'a '", "'!a'", "'-a'",
                             "'$a'", "\"a\\u202e\""}) {
        CHECK_MESSAGE(contains(problems_of(head + "users: {" + name + ": {roots: [/srv/a]}}\n"), "is not a name of a user"), name);
    }
    for (const auto *name : {"Alice", "a b", "'%Devs'", "ALL", "'CORP\\alice'", "alice.s@example.org", "'%CORP\\domain users'", "é"})
        CHECK_MESSAGE(problems_of(head + "users: {" + name + ": {roots: [/srv/a]}}\nagent: {accounts: per-user}\n").empty(), name);
    CHECK(contains(problems_of(head + "users: {root: {roots: [/srv/a]}}\n"), "root cannot be a user of pi"));
    CHECK(contains(problems_with("agent: {user: '%x'}\n"), "agent.user: '%x' is not a plain name"));
    CHECK(contains(problems_with("agent: {group: 0}\n"), "agent.group: must be text"));
    CHECK(contains(problems_with("agent: {binary_name: a/b}\n"), "agent.binary_name: 'a/b' is not a plain name"));
}

TEST_CASE("several possible users must be told whether they share an account")
{
    const std::string two = head + "users: {alice: {roots: [/srv/a]}, bob: {roots: [/srv/b]}}\n";
    CHECK(contains(problems_of(two), "agent.accounts: missing, and more than one user is possible"));
    CHECK(contains(problems_of(head + "users: {'%devs': {roots: [/srv/a]}}\n"), "agent.accounts: missing"));
    CHECK(problems_of(two + "agent: {accounts: shared}\n").empty());
    CHECK(problems_of(two + "agent: {accounts: per-user}\n").empty());
    CHECK(contains(problems_of(two + "agent: {accounts: per_user}\n"), "unknown value 'per_user'; did you mean 'per-user'?"));
}

TEST_CASE("an agent's account is nobody's own, and per-user means one each")
{
    const auto with = [](const std::string &agent, const std::string &users) {
        return problems_of(head + "agent: {" + agent + "}\nusers: {" + users + "}\n");
    };
    CHECK(contains(with("user: alice", "alice: {roots: [/srv/a]}"),
                   "agent.user: the agent's account 'alice' is a user of this policy (p.yaml:3:9)"));
    CHECK(contains(with("user: root", "alice: {roots: [/srv/a]}"), "the agent's account cannot be root"));
    CHECK(contains(problems_of("version: 1\nusers:\n  alice:\n    roots: [/srv/a]\n    run_as: root\n"),
                   "p.yaml:5:13: users.alice.run_as: the agent's account cannot be root"));
    CHECK(contains(with("accounts: shared", "alice: {roots: [/srv/a], run_as: bob}, bob: {roots: [/srv/a]}"),
                   "users.alice.run_as: the agent's account 'bob' is a user"));
    CHECK(contains(with("accounts: per-user", "alice: {roots: [/srv/a], run_as: x}, bob: {roots: [/srv/a], run_as: x}"),
                   "users.bob: has the account 'x' of users.alice"));
    CHECK(contains(with("accounts: per-user", "alice: {roots: [/srv/a], run_as: pi-agent-bob}, bob: {roots: [/srv/a]}"),
                   "has the account 'pi-agent-bob' of users.alice"));
    CHECK(contains(with("accounts: per-user", "'%devs': {roots: [/srv/a], run_as: x}"), "one account for all members of a group"));
    CHECK(with("accounts: per-user", "a23456789012345678901234: {roots: [/srv/a]}").empty()); // by number
    CHECK(contains(with("accounts: per-user", "alice: {roots: [/srv/a], run_as: pi-agent-1000}"),
                   "is how the account of the user with the uid 1000 is called"));
    CHECK(with("accounts: per-user, user: a", "x: {roots: [/srv/a]}, a-x: {roots: [/srv/b]}").empty()); // a person, and x's agent is a-UID
    CHECK(contains(with("accounts: per-user", "pi-agent-5: {roots: [/srv/a]}"), "users.pi-agent-5: has the name of an agent's account"));
    CHECK(contains(with("accounts: per-user", "pi-agent: {roots: [/srv/a]}"), "users.pi-agent: has the name of an agent's account"));
    CHECK(with("accounts: shared", "alice: {roots: [/srv/a], run_as: x}, bob: {roots: [/srv/a], run_as: x}").empty());
}

TEST_CASE("the agent's program lies where only administrators install")
{
    const auto problem = [](const std::string &path) { return problems_with("agent: {binary: '" + path + "'}\n"); };
    for (const auto *path : {"/usr/bin/pi", "/opt/x/bin/pi", "/nix/store/x-pi/bin/pi", "/srv/pi/bin/pi"})
        CHECK_MESSAGE(problem(path).empty(), path);
    for (const auto *path : {"pi", "/home/alice/pi", "/usr", "/usr/", "/usr/../tmp/pi", "/usr//bin/pi", "/usr/bin/p i", "/run/pi",
                             "/var/run/pi/bin/pi", "/tmp/pi", "/usr/bin/"}) {
        CHECK_MESSAGE(contains(problem(path), "p.yaml:5:17: agent.binary:"), path);
    }
}

TEST_CASE("files of variables: the policy's are absolute, the user's may be relative, and none is a list too")
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nenv_files: [/etc/pi-agent/env]\n");
    REQUIRE(policy.env_files.size() == 1);
    CHECK(policy.env_files[0].path == "/etc/pi-agent/env");
    CHECK(to_string(policy.env_files[0].where) == "p.yaml:3:13");
    CHECK(policy.host_env_files == std::vector<std::string>{".pi/agent/env"});
    CHECK(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nhost_env_files: []\n").host_env_files.empty());
    CHECK(contains(problems_with("env_files: [env]\n"), "env_files[0]: 'env' is not absolute"));
    CHECK(contains(problems_with("env_files: /etc/env\n"), "env_files: must be a list"));
    CHECK(contains(problems_with("host_env_files: [~/env]\n"), "begins with '~'"));
    CHECK(contains(problems_with("host_env_files: [a/../b]\n"), "holds '//', '.' or '..'"));
    CHECK(contains(problems_with("host_env_files: [a/]\n"), "is a directory"));
}

TEST_CASE("the view is minimal unless the policy says host, and shows besides what can be shown")
{
    CHECK(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n").view == View::minimal);
    CHECK(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nview: host\n").view == View::host);
    CHECK(contains(problems_with("view: none\n"), "view: unknown value 'none'"));
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nview_paths: [/srv/tools, /etc/pip.conf]\n");
    REQUIRE(policy.view_paths.size() == 2);
    CHECK(policy.view_paths[1].path == "/etc/pip.conf");
    CHECK(to_string(policy.view_paths[1].where) == "p.yaml:3:26");
    for (const auto *path : {"/", "/etc", "/srv", "/var", "/home/alice/tools", "/root", "/run/docker.sock", "/var/run/x", "/proc",
                             "/dev/kvm", "/tmp/x", "/var/lib/pi-agent/users", "tools", "~/tools", "/a//b", "/a/../b"})
        CHECK_MESSAGE(contains(problems_with("view_paths: [" + std::string(path) + "]\n"), "view_paths[0]: "), path);
    CHECK(contains(problems_with("view_paths: [/etc]\n"), "use 'view: host'"));
    CHECK(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\npath: [/opt/b, /opt/a]\n").path[1].path == "/opt/a");
    for (const auto *path : {"/", "/home/alice/bin", "/tmp/bin", "bin", "~/bin", "/opt/../bin", "'/opt/a:b'"})
        CHECK_MESSAGE(contains(problems_with("path: [" + std::string(path) + "]\n"), "path[0]: "), path);
}

TEST_CASE("an unknown method is refused by name, and the nearest is told")
{
    CHECK(contains(problems_with("sandbox: {method: noop}\n"), "sandbox.method: unknown value 'noop'; did you mean 'none'?"));
    CHECK(contains(problems_with("sandbox: {method: auto}\n"), "sandbox.method: unknown value 'auto'"));
}

TEST_CASE("the agents' homes are at a place of their own, which a unit can name")
{
    CHECK(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n").agent.state_dir == "/var/lib/pi-agent");
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nagent: {state_dir: /data}\n");
    CHECK(policy.agent.state_dir == "/data");
    CHECK(to_string(policy.agent.state_dir_where) == "p.yaml:3:20");
    CHECK(policy.users[0].roots[0].state_dir == "/data");
    for (const auto *path : {"/",          "/srv",       "/var/lib", "/mnt",    "/home/agents", "/root/x",  "/tmp/x",
                             "/run/x",     "/dev/shm/x", "/etc/x",   "/usr/x",  "/opt/x",       "/nix/x",   "/var/lib/pi-agent/x",
                             "/var/log/x", "agents",     "~/x",      "/a/../b", "/a/",          "/srv/a:b", "'/srv/a b'",
                             "'/srv/ä'",   "'/srv/%n'"})
        CHECK_MESSAGE(contains(problems_with("agent: {state_dir: " + std::string(path) + "}\n"), "agent.state_dir: "), path);
}

TEST_CASE("nothing that sessions see holds the agents' homes, or is in them")
{
    const auto with = [](const std::string &rest) { return problems_of("version: 1\nagent: {state_dir: /srv/agents}\n" + rest); };
    CHECK(with("users: {alice: {roots: [/srv/agents2, ~/projects]}}\nview_paths: [/srv/tools]\n").empty());
    for (const auto *root : {"/srv", "/srv/agents", "/srv/agents/users/bob"})
        CHECK_MESSAGE(contains(with("users: {alice: {roots: [" + std::string(root) + "]}}\n"),
                               "users.alice.roots[0]: '" + std::string(root) + "' holds the agents' homes (agent.state_dir: /srv/agents)"),
                      root);
    CHECK(contains(with("users: {alice: {roots: [/opt/a]}}\nview_paths: [/srv/agents/users]\n"), "view_paths: "));
    CHECK(contains(with("users: {alice: {roots: [/opt/a]}}\npath: [/srv/agents/bin]\n"), "path: "));
    CHECK(contains(with("users: {alice: {roots: [/opt/a], view_paths: [/srv/agents/users]}}\n"), "users.alice.view_paths: "));
    CHECK(contains(with("users: {alice: {roots: [/opt/a], path: [/srv/agents/bin]}}\n"), "users.alice.path: "));
    CHECK(contains(with("users: {alice: {roots: [{path: /srv, network: none}]}}\n"), "users.alice.roots[0]: "));
    CHECK(contains(problems_of("version: 1\nagent: {state_dir: /srv/pi, binary: /srv/pi/bin/pi}\nusers: {alice: {roots: [/opt/a]}}\n"),
                   "agent.binary: "));
}

TEST_CASE("the command has a plain name")
{
    const std::string users = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";
    CHECK(parse(users).wrapper.command_name == "pi");
    CHECK(parse(users + "wrapper: {command_name: agent}\n").wrapper.command_name == "agent");
    for (const auto *name : {"Agent", "'a b'", "../pi", "/usr/bin/pi", "'-x'", "''", "'5'"})
        CHECK_MESSAGE(contains(problems_of(users + "wrapper: {command_name: " + name + "}\n"), "wrapper.command_name: "), name);
}

TEST_CASE("names that pi-agent sets, or that change programs before they begin, cannot be set")
{
    for (const auto *name :
         {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "PI_CODING_AGENT_DIR", "PI_AGENT_SESSION", "SANDBOX_RUNTIME", "LD_PRELOAD",
          "GLIBC_TUNABLES", "BASH_ENV", "ENV", "a-b", "'1A'", "''", "'A=B'", "'A B'", "'BASH_FUNC_x%%'"}) {
        CHECK_MESSAGE(contains(problems_with(std::string("env: {") + name + ": x}\n"), "p.yaml:5:7: env."), name);
    }
    CHECK(contains(problems_of(head + "users: {alice: {roots: [/srv/a], env: {LD_PRELOAD: x}}}\n"),
                   "users.alice.env.LD_PRELOAD: changes programs"));
    CHECK(contains(problems_with("env: {A: \"x\\0y\"}\n"), "env.A: holds a NUL character"));
    CHECK(parse(head + alice + "env: {A: \"x\\ny\"}\n").env.at("A") == "x\ny");
}

TEST_CASE("files of policy.d join, and what is given twice is named with both places")
{
    const std::vector<PolicySource> joined = {
        {"p.yaml", head + "agent: {accounts: shared, user: ai}\n" + alice + "settings: {a: {b: 1}}\nenv: {A: x}\n"},
        {"d/10.yaml", "version: 1\nagent: {group: ai}\nusers: {bob: {roots: [/srv/b]}}\nsettings: {a: {c: 2}}\nenv: {B: y}\n"},
        {"d/20.yaml", "# nothing yet\n"}};
    const auto policy = parse_policy(joined);
    CHECK(policy.agent.user == "ai");
    CHECK(policy.agent.group == "ai");
    CHECK(policy.users.size() == 2);
    CHECK(to_string(policy.users[1].where) == "d/10.yaml:3:9");
    CHECK(nlohmann::json::parse(policy.documents.at("settings.json")) == nlohmann::json::parse(R"({"a": {"b": 1, "c": 2}})"));
    CHECK(policy.env.size() == 2);

    const auto clash = [](const std::string &first, const std::string &second) {
        return problems_of({{"p.yaml", head + first}, {"d.yaml", second}});
    };
    CHECK(contains(clash(alice, "users: {alice: {env: {A: x}}}\n"), "d.yaml:1:9: users.alice: given twice, first at p.yaml:3:3"));
    CHECK(contains(clash(alice + "agent: {user: a}\n", "agent: {user: a}\n"), "d.yaml:1:9: agent.user: given twice, first at p.yaml:5:9"));
    CHECK(contains(clash(alice + "settings: {a: [1]}\n", "settings: {a: [2]}\n"), "settings.a: given twice"));
    CHECK(contains(clash(alice + "env: {A: x}\n", "env: {A: x}\n"), "env.A: given twice"));
    CHECK(contains(clash(alice, "version: 2\n"), "d.yaml:1:10: version: is 2, which is newer"));
    CHECK(contains(clash(alice, "- x\n"), "d.yaml:1:1: must be a mapping"));
}

TEST_CASE("a file that cannot be parsed hides no other file's syntax error and invents none")
{
    const auto text = problems_of({{"a.yaml", "version: 1\nusers: [\n"}, {"b.yaml", "\tx: 1\n"}});
    CHECK(contains(text, "a.yaml:"));
    CHECK(contains(text, "b.yaml:1:1: a tab"));
    CHECK_FALSE(contains(text, "nobody is authorised"));
}

TEST_CASE("hostile documents end in a diagnostic")
{
    for (const auto *piece : {"[", "{", "- ", "? ", "a: ", "\"", "&a ", "*a ", "!a ", "|\n", "---\n", "%T\n", "[[a]: b,", "{a: ", "\"\\u",
                              ":", ",", "- {a: b}\n"}) {
        std::string text;
        while (text.size() < 200000)
            text += piece;
        CHECK_MESSAGE(!problems_of(text).empty(), piece);
    }
    std::string bomb = "version: 1\nsettings:\n  a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char name = 'b'; name <= 'i'; ++name)
        bomb += std::string("  ") + name + ": &" + name + " [*" + static_cast<char>(name - 1) + ",*" + static_cast<char>(name - 1) + "]\n";
    CHECK(contains(problems_of(bomb), "p.yaml:3:6: anchors and aliases"));
}

TEST_CASE("classes, managed documents and the lock of the settings are read")
{
    const auto policy = parse(head + alice + R"(config:
  classes: {extensions: agent, npm/cache/: mirror, "a b/ü": seed, sessions: never}
settings: {model: x}
models: {providers: {local: {apiKey: none, models: [{id: a}]}}}
keybindings: {}
mcp: {servers: {}}
settings_lock: true
)");
    CHECK(policy.config_classes.of("extensions/x") == FileClass::agent);
    CHECK(policy.config_classes.of("npm/cache/x") == FileClass::mirror);
    CHECK(policy.config_classes.of("a b/ü") == FileClass::seed);
    CHECK(policy.config_classes.of("sessions/x") == FileClass::never);
    CHECK(policy.config_classes.rules().size() == 4);
    CHECK(policy.settings_lock);
    REQUIRE(policy.documents.size() == 4);
    CHECK(nlohmann::json::parse(policy.documents.at("settings.json")) == nlohmann::json{{"model", "x"}});
    CHECK(nlohmann::json::parse(policy.documents.at("models.json")) ==
          nlohmann::json::parse(R"({"providers":{"local":{"apiKey":"none","models":[{"id":"a"}]}}})"));
    CHECK(policy.documents.at("keybindings.json") == "{}");
    CHECK_FALSE(parse(head + alice).settings_lock);
    CHECK(parse(head + alice).projects.mask.empty());
    const auto locked = parse(head + alice + "mcp_lock: true\nprojects: {mask: [.env]}\n");
    CHECK(locked.mcp_lock);
    REQUIRE(locked.projects.mask.size() == 2); // the project's servers, too
    CHECK(is_masked_by(locked.projects.mask[1].path, ".pi/mcp.json"));
    CHECK(is_masked_by(locked.projects.mask[1].path, "a/b/.pi/mcp.json"));
    CHECK_FALSE(is_masked_by(locked.projects.mask[1].path, "a/b.pi/mcp.json"));
    CHECK_FALSE(is_masked_by(locked.projects.mask[1].path, ".pi/mcp.json/x"));
    CHECK(parse(head + alice + "config: {classes: {}}\n").config_classes.rules().empty());
}

TEST_CASE("wrong classes and documents are named with their place")
{
    const auto classes = [](const std::string &text) { return problems_with("config:\n  classes:\n    " + text + "\n"); };
    CHECK(contains(classes("x: mirrored"), "p.yaml:7:8: config.classes.x: unknown value 'mirrored'; did you mean 'mirror'?"));
    CHECK(contains(classes("x: copy"), "config.classes.x: unknown value 'copy'"));
    CHECK(contains(classes("x: copy"), "use mirror or seed or once or agent or never"));
    CHECK(contains(classes("x: [agent]"), "config.classes.x: must be mirror or seed or once or agent or never, found a list"));
    CHECK(contains(classes("x: 5"), "config.classes.x: must be mirror or seed or once or agent or never, found the number 5"));
    CHECK(contains(problems_with("config: {classes: [x]}\n"), "config.classes: must be a mapping, found a list"));
    CHECK(contains(problems_with("config: {class: {}}\n"), "did you mean 'classes'?"));
    CHECK(contains(classes("x: never\n    x/: mirror"), "p.yaml:8:5: config.classes.x/: given twice, with and without a slash at its end"));
    for (const auto *path : {"/etc", "/", "~/x", "'~'", "''"})
        CHECK_MESSAGE(contains(classes(std::string(path) + ": agent"), "is not relative to the config directory"),
                      classes(std::string(path) + ": agent"));
    for (const auto *path : {"..", "../x", "a/../b", "a//b", "./a", ".", "a/."})
        CHECK_MESSAGE(contains(classes(std::string(path) + ": agent"), "p.yaml:7:5: config.classes"), path);
    for (const auto *path : {"..a", "a.b/c", ".hidden", "a/..b"})
        CHECK_MESSAGE(classes(std::string(path) + ": agent").empty(), path);
    for (const auto *name : {"models", "keybindings", "mcp", "settings"}) {
        CHECK(contains(problems_with(std::string(name) + ": [1]\n"), std::string(name) + ": must be a mapping, found a list"));
        CHECK(contains(problems_with(std::string(name) + ": {a: 010}\n"), std::string(name) + ".a: must be written as in JSON"));
    }
    CHECK(contains(problems_with("settings_lock: yes\n"), "settings_lock: must be true or false"));
    CHECK(contains(problems_with("setting_lock: true\n"), "did you mean 'settings_lock'?"));
}

TEST_CASE("scratch is on disk unless the policy says otherwise")
{
    CHECK((parse(head + alice).scratch == ScratchKind::disk));
    CHECK((parse(head + alice + "scratch: disk\n").scratch == ScratchKind::disk));
    CHECK((parse(head + alice + "scratch: tmpfs\n").scratch == ScratchKind::tmpfs));
    for (const std::string wrong : {"memory", "Tmpfs", "true", "[tmpfs]", "{tmpfs: 1G}", "''"})
        CHECK_MESSAGE(contains(problems_with("scratch: " + wrong + "\n"), "p.yaml:5:10: scratch: "),
                      problems_with("scratch: " + wrong + "\n"));
}

TEST_CASE("debuggers work where the host keeps them in the session, unless the policy says otherwise")
{
    CHECK((parse(head + alice).tracing == Tracing::automatic));
    CHECK((parse(head + alice + "hardening: {}\n").tracing == Tracing::automatic));
    for (const auto &row : {std::pair{"auto", Tracing::automatic}, {"always", Tracing::always}, {"never", Tracing::never}})
        CHECK_MESSAGE((parse(head + alice + "hardening: {tracing: " + row.first + "}\n").tracing == row.second), row.first);
    CHECK(contains(problems_with("hardening: {tracing: nevr}\n"), "did you mean 'never'?"));
    CHECK(contains(problems_with("hardening: {umask: 77}\n"), "hardening.umask: unknown key"));
}

TEST_CASE("what the agent is told is on unless the policy says no")
{
    const auto policy = parse(head + alice + "git_identity: false\nbox_notes: false\n");
    CHECK_FALSE(policy.git_identity);
    CHECK_FALSE(policy.box_notes);
    CHECK(parse(head + alice).git_identity);
    CHECK(parse(head + alice).box_notes);
    for (const std::string key : {"git_identity", "box_notes"})
        CHECK(contains(problems_with(key + ": no\n"), key + ": must be true or false"));
}

} // namespace policy_load_test
