// Renderings of every example policy: admin/render/render.hpp. PI_AGENT_WRITE_RENDERINGS=1 writes
// tests/unit/data/renderings anew; read what changed.
#include "admin/render/render.hpp"

#include "common/decide/decision.hpp"
#include "support/failure.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace render_test {

namespace {

std::string read_file(const std::filesystem::path &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// Somebody of each example, and a repository of theirs.
struct Person {
    std::string name;
    std::string home;
    std::vector<gid_t> groups;
    std::string root;
};

Person person_of(const std::string &example)
{
    if (example == "ci-runner") return {"ci", "/home/ci", {1007}, "/srv/ci/one"};
    if (example == "team-with-groups") return {"bob", "/home/bob", {1001}, "/home/bob/work/tool"};
    return {"alice", "/home/alice", {1000}, "/home/alice/projects"};
}

RenderFacts facts_of(const Person &person)
{
    const bool is_alice = person.name == "alice";
    return {{{person.name, Uid(person.groups[0]), Gid(person.groups[0]), person.home, person.groups},
             {"pi-agent", Uid(990), Gid(985), "/nonexistent", {985}},
             person.root,
             is_alice ? "demo" : "",
             {},
             {},
             {{is_alice ? "demo/.git" : ".git", PointKind::prefix}, {is_alice ? "demo/.git/hooks" : ".git/hooks", PointKind::read_only}},
             {},
             "localhost/pi-agent:golden"},
            {},
            {}};
}

RenderPlan planned(const Policy &policy, const RenderFacts &facts)
{
    auto plan = plan_rendering(policy, std::get<AccessRules>(find_access_rules(policy, facts.user, "p.yaml")), facts);
    for (const char *name : {"NPM_CONFIG_GLOBALCONFIG", "PATH", "PI_AGENT_VERSION", "SHELL"}) // of the build
        plan.variables[name] = "/golden";
    return plan;
}

std::string refusal(const RenderPlan &plan)
{
    try {
        require_honoured(plan);
        return "";
    } catch (const Failure &failure) {
        return failure.what();
    }
}

std::string render(const RenderPlan &plan)
{
    if (const auto refused = refusal(plan); !refused.empty()) return refused + "\n";
    const auto text = render_kubernetes(plan, parse_workspace_volume("nfs.example.net:/workspaces"), {"-p", "say 100% \"$HOME\" isn't it"});
    return text.substr(text.find('\n') + 1); // the first line has the version
}

// A policy that alice may use, of these lines beside.
RenderPlan plan_with(const std::string &lines, const std::string &of_alice = "")
{
    return planned(parse("version: 1\nusers: {alice: {roots: [~/projects]" + of_alice + "}}\n" + lines), facts_of(person_of("")));
}

} // namespace

TEST_CASE("every example policy is rendered as the golden files say")
{
    const std::filesystem::path place = std::filesystem::path(PI_AGENT_EXAMPLES).parent_path() / "tests/unit/data/renderings";
    int seen = 0;
    for (const auto &entry : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        const std::string name = entry.path().stem().string();
        const auto policy = parse_policy({{entry.path().filename().string(), read_file(entry.path())}});
        auto facts = facts_of(person_of(name));
        for (const auto &file : policy.env_files)
            facts.managed_files.push_back({"LLM_KEY", "s3cret", file.path + ":1"});
        const auto plan = planned(policy, facts);
        const auto file = place / (name + ".kubernetes.txt");
        const std::string text = render(plan);
        CHECK_FALSE(contains(text, "s3cret"));
        if (std::getenv("PI_AGENT_WRITE_RENDERINGS") != nullptr) // NOLINT(concurrency-mt-unsafe)
            std::ofstream(file) << text;
        else
            CHECK_MESSAGE(text == read_file(file), file.string());
        ++seen;
    }
    CHECK(seen == 7);
}

TEST_CASE("what a Job cannot honour is an error that names the key and its place")
{
    const std::vector<std::pair<std::string, std::string>> rows = {
        {"network: loopback\n", "p.yaml:3:10: network: "},
        {"network: [10.0.0.0/8, 127.0.0.0/8]\n", "p.yaml:3:10: network: "},
        {"network: [126.0.0.0/7]\n", "p.yaml:3:10: network: "},
        {"network: ['::/1']\n", "p.yaml:3:10: network: "},
        {"network: {hosts: [a.example]}\n", "p.yaml:3:10: network: "},
        {"network: {hosts: []}\nproviders: {openai: {key_file: /etc/k}}\n", "p.yaml:4:13: providers: "},
        {"projects: {mask: [.env]}\n", "p.yaml:3:19: projects.mask: "},
        {"view: host\n", "p.yaml: view: "},
        {"view_paths: [/srv/tools]\n", "p.yaml:3:14: view_paths: "},
        {"toolchains: {readable: [~/.nvm]}\n", "p.yaml:3:25: toolchains.readable: "},
        {"toolchains: {caches: [~/.npm]}\n", "p.yaml:3:23: toolchains.caches: "},
        {"limits: {memory: 50%}\n", "p.yaml:3:18: limits.memory: "},
        {"limits: {tasks: 100}\n", "p.yaml:3:17: limits.tasks: "},
        {"limits: {disk: 10G}\n", "p.yaml:3:16: limits.disk: "},
        {"agent: {binary_name: coder}\n", "p.yaml:3:8: agent.binary_name: "},
        {"env: {SSL_CERT_FILE: /srv/ca.pem}\n", "p.yaml:3:7: env.SSL_CERT_FILE: "},
        {"env: {SSL_CERT_FILE: /etc/ssl/certs/own.pem}\n", "p.yaml:3:7: env.SSL_CERT_FILE: "},
        {"env: {SSL_CERT_DIR: '/etc/ssl/certs:/srv/ca'}\n", "p.yaml:3:7: env.SSL_CERT_DIR: "},
        {"view_paths: [/srv/ca]\nenv: {NODE_EXTRA_CA_CERTS: /srv/ca/own.pem}\n", "p.yaml:4:7: env.NODE_EXTRA_CA_CERTS: "},
        {"config: {classes: {skills: mirror}}\n", "p.yaml: config.classes.skills: "},
        {"mcp: {s: {args: ['--token', abc]}}\n", "p.yaml: mcp.s.args.1: "},
        {"env: {API_KEY: x}\n", "p.yaml:3:7: env.API_KEY: "},
        {"wrapper: {clipboard: false}\n", "p.yaml:3:10: wrapper.clipboard: "},
    };
    for (const auto &one : rows) {
        const std::string &lines = one.first; // clang 14 captures no part of a pair
        CHECK_MESSAGE(contains(refusal(plan_with(lines)), one.second + "kubernetes cannot honour it: "), lines);
    }
    for (const char *lines :
         {"network: [10.0.0.0/8]\n", "network: none\n", "limits: {sessions: 2}\n", "env: {SSL_CERT_FILE: /home/alice/projects/ca.pem}\n",
          "config: {classes: {skills: never}}\n", "settings_lock: true\n"})
        CHECK_MESSAGE(refusal(plan_with(lines)).empty(), lines);
}

TEST_CASE("what a user has of their own, and what is outside of the root, is an error")
{
    CHECK(contains(refusal(plan_with("", ", ssh: {key: .ssh/id}")), "users.alice.ssh.key: kubernetes cannot honour it"));
    CHECK(contains(refusal(plan_with("", ", signing: {key: .ssh/id}")), "users.alice.signing.key: kubernetes cannot honour it"));
    CHECK(contains(refusal(plan_with("", ", env: {DB_PASSWORD: x}")), "users.alice.env.DB_PASSWORD: kubernetes"));
    auto facts = facts_of(person_of(""));
    facts.host_variables = {"/home/alice/.pi/agent/env:1"};
    facts.beside = {"/home/alice/other/.git"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    const std::string text = refusal(plan);
    CHECK(contains(text, "host_env_files: kubernetes cannot honour it: /home/alice/.pi/agent/env:1 sets variables"));
    CHECK(contains(text, "git directory elsewhere, at /home/alice/other/.git"));
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects], readable: [~/data]}}\n");
    const auto of_alice = policy_for(policy, std::get<AccessRules>(find_access_rules(policy, facts.user, "p.yaml")));
    const std::string said = refusal(planned(of_alice, facts_of(person_of(""))));
    CHECK(contains(said, "users.alice.readable: kubernetes cannot honour it: '~/data' belongs to the user"));
}

TEST_CASE("the value of a file of variables is in no rendering, and its name is")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"TOKEN", "s3cret", "/etc/pi-agent/env:1"}, {"PLAIN", "s3cret", "/etc/pi-agent/env:2"}};
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nenv_files: [/etc/pi-agent/env]\nenv: {PLAIN: weaker}\n");
    const auto plan = planned(policy, facts);
    const std::string text = render(plan);
    CHECK_FALSE(contains(text, "cannot honour"));
    CHECK_FALSE(contains(text, "s3cret"));
    CHECK_FALSE(contains(text, "weaker"));
    CHECK(contains(text, "/etc/pi-agent/env"));
}

TEST_CASE("a file of variables that an engine would read otherwise is refused, and a stronger layer is what the agent gets")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"A", "x", "/etc/pi-agent/env:1"}};
    facts.quoted_files = {"/etc/pi-agent/env"};
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nenv_files: [/etc/pi-agent/env]\n");
    CHECK(contains(refusal(planned(policy, facts)), "has quotes or continued lines"));
    facts.quoted_files.clear();
    const auto twice = parse("version: 1\nusers: {alice: {roots: [~/projects], env: {A: y}}}\nenv_files: [/etc/pi-agent/env]\n");
    CHECK(contains(render(planned(twice, facts)), "- name: A\n              value: \"y\"\n"));
}

TEST_CASE("a name that a volume would divide is refused")
{
    for (const std::string odd : {"a b", "a:b", "a%b", "a,b", "a\nExecStartPre=+x"}) {
        auto facts = facts_of(person_of(""));
        facts.tree += "/" + odd;
        const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
        CHECK(contains(refusal(plan), "cannot be written down for an engine"));
    }
}

TEST_CASE("certificates that a file of variables or a user's entry names are told by these, and the name of a variable is no secret of a "
          "document")
{
    auto facts = facts_of(person_of(""));
    facts.managed_files = {{"PIP_CERT", "/srv/ca.pem", "/etc/pi-agent/env:1"}, {"LLM_KEY", "s3cret", "/etc/pi-agent/env:2"}};
    const std::string text = refusal(planned(parse("version: 1\nusers: {alice: {roots: [~/projects], env: {CURL_CA_BUNDLE: /srv/ca.pem}}}\n"
                                                   "env_files: [/etc/pi-agent/env]\n"),
                                             facts));
    CHECK(contains(text, "p.yaml:3:13: env_files: kubernetes cannot honour it: PIP_CERT names certificates"));
    CHECK(contains(text, "users.alice.env.CURL_CA_BUNDLE: kubernetes cannot honour it: CURL_CA_BUNDLE names certificates"));
    facts.managed_files.erase(facts.managed_files.begin());
    CHECK(refusal(planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"
                                "env_files: [/etc/pi-agent/env]\nmodels: {providers: {x: {apiKey: LLM_KEY}}}\n"),
                          facts))
              .empty());
}

TEST_CASE("a file of variables whose name an engine would read otherwise is refused")
{
    CHECK(contains(refusal(plan_with("env_files: ['/etc/pi-agent/%h env']\n")),
                   "the name /etc/pi-agent/%h env cannot be written down for an engine"));
}

TEST_CASE("what root's engine would follow, and what the runner alone keeps from being made, is an error that names it")
{
    auto facts = facts_of(person_of(""));
    facts.links = {"demo/.git/hooks"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    CHECK(contains(refusal(plan), "p.yaml: projects.protect: kubernetes cannot honour it: 'demo/.git/hooks' is a symlink"));
    facts.links.clear();
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nprojects: {protect: [.envrc, Makefile]}\n");
    facts.missing = {{"demo/Makefile", policy.projects.protect->back().where}};
    CHECK(contains(refusal(planned(policy, facts)),
                   "p.yaml:3:30: projects.protect: kubernetes cannot honour it: 'demo/Makefile' does not exist"));
}

TEST_CASE("what a start would tell of protected paths is in the head, and does nothing to root's terminal")
{
    auto facts = facts_of(person_of(""));
    facts.notices = {"not protected from the agent, because you cannot look at it: /home/alice/projects/a\nrm x"};
    const auto plan = planned(parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n"), facts);
    CHECK(contains(render(plan), "\n# Of the project: not protected from the agent, because you cannot look at it: "
                                 "/home/alice/projects/a\\x0arm x\n"));
}

TEST_CASE("a Job says that it lacks limits, and that something else must enforce its network")
{
    const auto said = [](const std::string &lines) { return render(plan_with(lines)); };
    CHECK(contains(said(""), "#   limits.memory: without an amount in the policy the Job has no limit\n"));
    CHECK_FALSE(contains(said("limits: {memory: 8G}\n"), "#   limits.memory: "));
    CHECK(contains(said("network: none\n"), "# A network plugin that enforces NetworkPolicy is needed"));
    CHECK_FALSE(contains(said(""), "NetworkPolicy"));
}

TEST_CASE("links among the points are found without being followed, and those that lie behind one")
{
    const TemporaryDirectory place;
    place.make("real/inner");
    place.write("real/file", "x");
    place.link("link", "real");
    place.link("dangling", "/nonexistent");
    const UniqueFd top = UniqueFd::adopt(::open(place.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); // NOLINT(*-vararg)
    std::map<std::string, PointKind> points = {{"real", PointKind::prefix}, {"real/file", PointKind::read_only}};
    CHECK(links_among(points, top).empty());
    for (const char *path : {"link", "link/file", "dangling", "real/inner"})
        points.emplace(path, PointKind::read_only);
    CHECK(links_among(points, top) == std::vector<std::string>{"dangling", "link", "link/file"});
    points.emplace("gone", PointKind::read_only);
    CHECK(errno_of([&] { return links_among(points, top); }) == ENOENT);
}

TEST_CASE("names of renderings are DNS labels, and each user and project has its own")
{
    auto facts = facts_of(person_of(""));
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n");
    facts.tree = "/home/alice/projects/" + std::string(200, 'X') + "_y";
    const std::string one = planned(policy, facts).name;
    facts.tree += "z";
    const std::string other = planned(policy, facts).name;
    CHECK(one.size() <= 63);
    CHECK(one != other);
    CHECK(one.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
}

} // namespace render_test
