// What holds for one session, level by level: common/decide/decision.hpp
#include "common/decide/decision.hpp"

#include "common/base/text.hpp"
#include "common/policy/policy_paths.hpp"
#include "support/access.hpp"
#include "support/policy_text.hpp"
#include "support/shown_policy.hpp"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace effective_test {

namespace {

Policy in_root(const Policy &policy, const Account &caller, std::size_t root = 0)
{
    const auto access = granted(policy, caller);
    REQUIRE(root < access.roots.size());
    return policy_in(policy_for(policy, access), access.roots[root].spec);
}

// A value of each level: the whole policy, a group, a user and, where it may stand there, a root.
struct Row {
    const char *key;
    std::array<const char *, 4> values;
    const char *in_root = nullptr; // what a root calls it
};

const Row rows[] = {
    {"network", {"none", "loopback", "full", "[10.0.0.0/8]"}, "network"},
    {"network", {"{hosts: [a.example]}", "full", "{hosts: ['*.b.example'], may_grant: [c.example]}", "{hosts: []}"}, "network"},
    {"limits.memory", {"1G", "50%", "3G", "4G"}},
    {"limits.tasks", {"101", "102", "103", "104"}},
    {"limits.cpu", {"100%", "200%", "300%", "400%"}},
    {"limits.runtime", {"1h", "2h", "3h", "4h"}},
    {"limits.sessions", {"1", "2", "3", "4"}},
    {"projects.paths", {"alias", "host", "alias", "host"}},
    {"projects.scope", {"project", "root", "project", "root"}, "scope"},
    {"projects.protect", {"[a]", "default", "[]", "[b/]"}, "protect"},
    {"projects.mask", {"['.env*']", "[]", "[keys]", "[a/b]"}, "mask"},
    {"projects.aftermath", {"false", "true", "false", "true"}},
    {"projects.undo", {"false", "true", "{size: 2G}", "{size: 3G, file: 20M}"}, "undo"},
    {"projects.read_only", {"true", "false", "true", "false"}, "read_only"},
    {"settings_lock", {"true", "false", "true", "false"}},
    {"mcp_lock", {"true", "false", "true", "false"}},
    {"env_files", {"[/etc/a]", "[/etc/b]", "[]", "[/etc/d]"}},
    {"toolchains.readable", {"[~/.a]", "[default, ~/.b]", "[]", "[~/.d]"}},
    {"toolchains.caches", {"[~/.a]", "[best_effort, ~/.b]", "[]", "[~/.d]"}},
    {"view_paths", {"[/srv/t]", "[/srv/u]", "[]", "[/srv/w]"}},
    {"path", {"[/opt/a]", "[/opt/b]", "[]", "[/opt/d]"}},
    {"devices", {"[/dev/dri]", "[/dev/kvm]", "[]", "[nvidia]"}},
    {"placement.engine", {"slurm", "none", "slurm", "none"}},
    {"placement.partition", {"one", "two", "three", "four"}},
    {"placement.account", {"one", "two", "three", "four"}},
    {"placement.qos", {"one", "two", "three", "four"}},
    {"placement.constraint", {"one", "two&three", "four|five", "six"}},
    {"scratch", {"tmpfs", "disk", "tmpfs", "disk"}},
};

// "limits: {memory: 1G}"
std::string said(const std::string &key, const std::string &value)
{
    const auto dot = key.find('.');
    return dot == std::string::npos ? key + ": " + value : key.substr(0, dot) + ": {" + key.substr(dot + 1) + ": " + value + "}";
}

const std::string head = "version: 1\nagent: {accounts: shared}\n";

// alice has her own entry, bob only that of a group, carol a root with rules; alice and carol are in the group, too.
std::string policy_of(const Row &row, unsigned levels)
{
    const auto at = [&](unsigned level) { return ((levels >> level) & 1U) != 0 ? ", " + said(row.key, row.values.at(level)) : ""; };
    const auto root = (levels & 8U) != 0 && row.in_root != nullptr ? fmt::format(", {}: {}", row.in_root, row.values[3]) : "";
    return fmt::format("{}{}users: {{alice: {{roots: [/srv/a]{}}}, '%daemon': {{roots: [/srv/d]{}}}, "
                       "carol: {{roots: [{{path: /srv/c{}}}, /srv/e]{}}}}}\n",
                       head, (levels & 1U) != 0 ? said(row.key, row.values[0]) + "\n" : "", at(2), at(1), root, at(2));
}

// "users.%daemon.settings settings": who says a part of the value.
std::string places_of(const Policy &policy, const std::string &key)
{
    const SaidAt &said = policy.rules.places.at(key);
    std::string text = said.key;
    for (const auto &more : said.also)
        text += " " + more.key;
    return text;
}

// The innermost of these levels that says it, or none.
std::optional<unsigned> innermost(unsigned levels, unsigned those)
{
    for (unsigned level = 4; level-- > 0;)
        if ((levels & those & (1U << level)) != 0) return level;
    return std::nullopt;
}

std::string expected(const Row &row, unsigned levels, unsigned those)
{
    const auto level = innermost(levels, those);
    return shown(parse(head + (level ? said(row.key, row.values.at(*level)) + "\n" : "") + "users: {alice: {roots: [/srv/a]}}\n"));
}

} // namespace

TEST_CASE("the innermost level that says a value has it, whoever starts where")
{
    for (const auto &row : rows)
        for (unsigned levels = 0; levels < 16; ++levels) {
            if ((levels & 8U) != 0 && row.in_root == nullptr) continue;
            const auto text = policy_of(row, levels);
            const auto policy = parse(text);
            CHECK_MESSAGE(shown(in_root(policy, account("alice", {daemon_group}))) == expected(row, levels, 7), text);
            CHECK_MESSAGE(shown(in_root(policy, account("bob", {daemon_group}))) == expected(row, levels, 3), text);
            CHECK_MESSAGE(shown(in_root(policy, account("carol", {daemon_group}), 0)) == expected(row, levels, 15), text);
            CHECK_MESSAGE(shown(in_root(policy, account("carol", {daemon_group}), 1)) == expected(row, levels, 7), text);
        }
}

TEST_CASE("each value has the place where it is said")
{
    for (const auto &row : rows) {
        const auto policy = parse(policy_of(row, row.in_root != nullptr ? 15 : 7));
        const std::string key = row.key;
        const auto said_at = [&](const Policy &effective) { return effective.rules.places.at(key).key; };
        CHECK(said_at(policy) == key);
        CHECK(said_at(in_root(policy, account("alice", {daemon_group}))) == "users.alice." + key);
        CHECK(said_at(in_root(policy, account("bob", {daemon_group}))) == "users.%daemon." + key);
        CHECK(said_at(in_root(policy, account("carol"), 1)) == "users.carol." + key);
        if (row.in_root != nullptr)
            CHECK(said_at(in_root(policy, account("carol"), 0)) == fmt::format("users.carol.roots[0].{}", row.in_root));
        CHECK(in_root(policy, account("alice")).rules.places.at(key).where.line == 3 + 1);
    }
}

TEST_CASE("a policy without levels is what it was")
{
    const auto policy = parse("version: 1\nusers:\n  alice:\n    roots: [~/projects]\n");
    const auto effective = in_root(policy, account("alice", {daemon_group, sys_group}));
    CHECK(shown(effective) == shown(policy));
    CHECK(effective.rules.places.empty());
}

TEST_CASE("documents are merged from the outside in")
{
    const auto policy = parse(head + "settings: {a: 1, deep: {x: 1, y: 1}, list: [1]}\n"
                                     "users: {'%daemon': {roots: [/srv/d], settings: {deep: {y: 2}, list: [2]}}, "
                                     "alice: {roots: [/srv/a], settings: {a: 3}, mcp: {m: {}}}}\n");
    const auto documents = [&](const Account &caller) { return in_root(policy, caller).documents; };
    CHECK(documents(account("alice", {daemon_group})).at("settings.json") == R"({"a":3,"deep":{"x":1,"y":2},"list":[2]})");
    CHECK(documents(account("alice")).at("settings.json") == R"({"a":3,"deep":{"x":1,"y":1},"list":[1]})");
    CHECK(documents(account("alice")).at("mcp.json") == R"({"m":{}})");
    CHECK(documents(account("bob", {daemon_group})).at("settings.json") == R"({"a":1,"deep":{"x":1,"y":2},"list":[2]})");
    CHECK_FALSE(documents(account("bob", {daemon_group})).contains("mcp.json"));
}

TEST_CASE("a document that is merged has the places of all who say a part of it, the innermost first")
{
    const auto policy = parse(head + "settings: {a: 1}\nusers: {'%daemon': {roots: [/srv/d], settings: {b: 2}}, "
                                     "'%sys': {roots: [/srv/s], settings: {c: 3}}, alice: {roots: [/srv/a], settings: {d: 4}}, "
                                     "carol: {roots: [/srv/c], settings: {a: 9}}}\n");
    const auto of = [&](const Account &caller) { return places_of(in_root(policy, caller), "settings"); };
    CHECK(of(account("bob", {daemon_group, sys_group})) == "users.%daemon.settings users.%sys.settings settings");
    CHECK(of(account("alice", {daemon_group})) == "users.alice.settings users.%daemon.settings settings");
    CHECK(of(account("alice")) == "users.alice.settings settings");
    CHECK(of(account("carol")) == "users.carol.settings"); // of what is around nothing is left
}

TEST_CASE("variables of groups hold below the user's own")
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [/srv/d], env: {A: g, B: g}}, alice: {roots: [/srv/a], env: {A: own}}}\n");
    const auto access = granted(policy, account("alice", {daemon_group}));
    CHECK(access.env == Environment{{"A", "own"}, {"B", "g"}});
    CHECK(access.env_where.at("A").line == 3);
    CHECK(access.roots.size() == 1); // who she is, and where, is in her own entry
}

TEST_CASE("lists of several groups are joined, and scalars must agree")
{
    const auto joined =
        parse(head + "users: {'%daemon': {roots: [/srv/d], network: [10.0.0.0/8], projects: {mask: [a], protect: [x]}, "
                     "view_paths: [/srv/t], limits: {memory: 1G}, toolchains: {readable: [~/.a]}, scratch: tmpfs}, "
                     "'%sys': {roots: [/srv/s], network: [10.0.0.0/8, '::1/128'], projects: {mask: [b, a], protect: [y]}, "
                     "view_paths: [/srv/u], limits: {memory: 1024M, tasks: 99}, toolchains: {readable: [best_effort, ~/.b]}, "
                     "scratch: tmpfs}}\n");
    const auto policy = in_root(joined, account("bob", {daemon_group, sys_group}));
    CHECK(policy.network.allowed.size() == 2);
    CHECK(policy.projects.mask.size() == 2);
    CHECK(policy.projects.protect->size() == 2);
    CHECK(policy.view_paths.size() == 2);
    CHECK(policy.toolchains.readable.paths.size() == 2);
    CHECK(policy.toolchains.readable.best_effort);
    CHECK(policy.limits.memory->amount == std::uint64_t{1} << 30U);
    CHECK(policy.limits.tasks->amount == 99);
    CHECK(policy.scratch == ScratchKind::tmpfs);
    CHECK(places_of(policy, "projects.mask") == "users.%daemon.projects.mask users.%sys.projects.mask");
    CHECK(places_of(policy, "limits.tasks") == "users.%sys.limits.tasks");
}

TEST_CASE("groups that contradict each other are an error, unless the user's own entry says it")
{
    for (const auto *pair :
         {"network|none|loopback", "network|none|[10.0.0.0/8]", "limits.memory|1G|2G", "limits.memory|1G|50%", "limits.tasks|40|50",
          "projects.scope|root|project", "projects.protect|default|[a]", "projects.read_only|true|false", "projects.aftermath|true|false",
          "settings_lock|true|false", "scratch|disk|tmpfs", "settings|{a: 1}|{a: 2}", "settings|{a: {b: 1}}|{a: {b: 2}}",
          "settings|{a: {b: 1}}|{a: 2}"}) {
        const auto parts = split(pair, '|');
        const std::string key(parts[0]);
        const auto groups = fmt::format("'%daemon': {{roots: [/srv/d], {}}}, '%sys': {{roots: [/srv/s], {}}}",
                                        said(key, std::string(parts[1])), said(key, std::string(parts[2])));
        const auto caller = account("alice", {daemon_group, sys_group});
        const auto none = parse(head + "users: {" + groups + "}\n");
        CHECK_THROWS_WITH_AS(static_cast<void>(find_access_rules(none, caller, "p.yaml")),
                             doctest::Contains(("users.%sys." + key + ": another group of alice sets another value").c_str()), PolicyError);
        CHECK_NOTHROW(static_cast<void>(granted(none, account("alice", {sys_group}))));
        const auto own = parse(head + "users: {" + groups + ", alice: {roots: [/srv/a], " + said(key, std::string(parts[1])) + "}}\n");
        CHECK(shown(in_root(own, caller)) ==
              shown(parse(head + said(key, std::string(parts[1])) + "\nusers: {alice: {roots: [/srv/a]}}\n")));
    }
}

TEST_CASE("an own entry settles what groups say of a document where it says the same part of it")
{
    const auto with = [](const std::string &own) {
        return parse(head + "users: {'%daemon': {roots: [/srv/d], settings: {a: 1, c: {d: 1}}}, '%sys': {roots: [/srv/s], " +
                     "settings: {a: 2}}, alice: {roots: [/srv/a], settings: " + own + "}}\n");
    };
    const auto caller = account("alice", {daemon_group, sys_group});
    for (const auto *own : {"{b: 3}", "{}", "{c: {a: 1}}"})
        CHECK_THROWS_WITH_AS(static_cast<void>(find_access_rules(with(own), caller, "p.yaml")),
                             doctest::Contains("users.%sys.settings: another group of alice sets another value"), PolicyError);
    CHECK(in_root(with("{a: 3, b: 4}"), caller).documents.at("settings.json") == R"({"a":3,"b":4,"c":{"d":1}})");
}

TEST_CASE("a user's own readable directories are shown beside toolchains, and never twice")
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a], readable: [~/datasets]}}\n");
    const auto effective = in_root(policy, account("alice"));
    CHECK(effective.toolchains.readable.paths.size() == policy.toolchains.readable.paths.size() + 1);
    CHECK(effective.toolchains.readable.paths.back().path == "datasets");
    CHECK(contains(problems_of("version: 1\ntoolchains: {readable: [~/data]}\nusers: {alice: {roots: [/srv/a], readable: [~/data/x]}}\n"),
                   "users.alice.readable: '~/data/x' and '~/data' are both listed for the same place"));
    for (const auto *wrong : {"[/]", "[/etc/x]", "[/home/bob]", "[/run/x]", "[/tmp/x]", "[/var/lib/pi-agent]", "[/srv]", "[/srv//x]",
                              "['/srv/../x']", "['/srv/{user}/../x']", "[~]", "['~/.ssh']", "['~/a/../b']", "[datasets]"})
        CHECK_MESSAGE(contains(problems_of(fmt::format("version: 1\nusers: {{alice: {{roots: [/srv/a], readable: {}}}}}\n", wrong)),
                               "users.alice.readable[0]: "),
                      wrong);
}

TEST_CASE("data that others keep is shown by its absolute path, and in no home")
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a], readable: [/data/sets/, '/srv/{user}', ~/own]}}\n");
    const auto paths = in_root(policy, account("alice")).toolchains.readable.paths;
    std::vector<std::string> own;
    for (const auto &path : paths)
        if (path.where.line > 0) own.push_back(written_home_path(path.path));
    CHECK(own == std::vector<std::string>{"/data/sets", "/srv/{user}", "~/own"});
    CHECK(place_in_agent_home("/data/sets").empty());
    CHECK(contains(problems_of("version: 1\nusers: {alice: {roots: [/srv/a], readable: [/data, /data/sets]}}\n"), "both listed"));
}

TEST_CASE("ports are given by the innermost level that says so")
{
    const auto policy = parse(
        "version: 1\nagent: {accounts: per-user}\nusers: {alice: {roots: [/srv/a], wrapper: {ports: true}}, bob: {roots: [/srv/b]}}\n");
    CHECK(in_root(policy, account("alice")).wrapper.ports);
    CHECK_FALSE(in_root(policy, account("bob")).wrapper.ports);
    const auto other = parse("version: 1\nagent: {accounts: per-user}\nwrapper: {ports: true}\n"
                             "users: {alice: {roots: [/srv/a], wrapper: {ports: false}}, bob: {roots: [/srv/b]}}\n");
    CHECK_FALSE(in_root(other, account("alice")).wrapper.ports);
    CHECK(in_root(other, account("bob")).wrapper.ports);
    CHECK(contains(problems_of("version: 1\nusers: {alice: {roots: [/srv/a], wrapper: {enable: false}}}\n"),
                   "users.alice.wrapper.enable: unknown key"));
}

TEST_CASE("what no level may say is refused with its place, and never ignored")
{
    const auto refused = [](const std::string &entry) {
        return problems_of("version: 1\nusers:\n  alice:\n    roots: [/srv/a, " + entry + "]\n");
    };
    CHECK(contains(refused("{path: /srv/b, limits: {memory: 1G}}"), "p.yaml:4:36: users.alice.roots[1].limits: unknown key; did you mean"));
    CHECK(contains(refused("{path: /srv/b, projects: {mask: [a]}}"), "users.alice.roots[1].projects: unknown key"));
    CHECK(contains(refused("{network: none}"), "users.alice.roots[1]: has no path"));
    CHECK(contains(refused("{path: ~, network: none}"), "users.alice.roots[1].path"));
    CHECK(contains(refused("{path: /etc}"), "users.alice.roots[1].path: '/etc' belongs to the system"));
    CHECK(contains(refused("{path: /srv/a, network: none}"), "'/srv/a' is named twice, first at p.yaml:4:13, with different rules"));
    CHECK(refused("{path: /srv/b}").empty());
    for (const auto *key : {"agent: {user: x}", "wrapper: {enable: false}", "sandbox: {method: none}", "view: host", "git_identity: false",
                            "projects: {ownership: idmap}", "hardening: {tracing: never}", "config: {classes: {}}"})
        CHECK_MESSAGE(problems_of(fmt::format("version: 1\nusers: {{alice: {{roots: [/srv/a], {}}}}}\n", key)) != "", key);
    const auto with_method = [](const std::string &method, const std::string &user) {
        return problems_of("version: 1\nsandbox: {method: " + method + "}\nusers: {alice: {roots: [{path: /srv/a, network: loopback}], " +
                           user + "}}\n");
    };
    CHECK(contains(with_method("bwrap", "network: none"), "users.alice.roots[0].network: sandbox.method bwrap"));
    CHECK(contains(with_method("bwrap", "network: [10.0.0.0/8]"), "users.alice.network: sandbox.method bwrap"));
    CHECK(contains(with_method("podman", "devices: [/dev/dri]"), "users.alice.devices: sandbox.method podman"));
}

TEST_CASE("a root that is granted twice with different rules refuses the start")
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [{path: /srv/d, network: none}]}, '%sys': {roots: [/srv/d]}}\n");
    const auto caller = account("bob", {daemon_group, sys_group});
    const auto access = granted(policy, caller);
    std::vector<RootCandidate> roots;
    for (const auto &root : access.roots)
        roots.push_back({root.spec.text, root.by_group, root.spec.where, root.spec.rules});
    const auto decision = decide(caller, access, roots, "/srv/d/x");
    REQUIRE(std::holds_alternative<Refused>(decision));
    CHECK(contains(std::get<Refused>(decision).text, "twice, with different rules"));
}

TEST_CASE("under an alias of one user alone, only that user's roots may have any name")
{
    const std::string odd = "'/srv/a b'";
    CHECK(contains(problems_of("version: 1\nusers: {alice: {roots: [" + odd + "]}}\n"), "holds a character other than"));
    const auto policy = parse(head + "users: {alice: {roots: [" + odd + "], projects: {paths: alias}}, bob: {roots: [/srv/b]}}\n");
    CHECK_FALSE(granted(policy, account("alice")).roots[0].spec.at_own_path);
    CHECK(granted(policy, account("bob")).roots[0].spec.at_own_path);
}

TEST_CASE("a root whose network would give away the keys of providers refuses its starts, and one without a network keeps them outside")
{
    const auto policy = parse(head + "network: {hosts: []}\nproviders: {anthropic: {key_file: /etc/k}}\n"
                                     "users: {alice: {roots: [/srv/a, {path: /srv/b, network: none}]}, "
                                     "'%daemon': {roots: [/srv/d], network: {hosts: [a.example]}}}\n");
    CHECK(in_root(policy, account("alice")).providers.size() == 1);
    CHECK(routed_providers(in_root(policy, account("alice"))).size() == 1);
    CHECK(in_root(policy, account("alice"), 1).providers.size() == 1);
    CHECK(routed_providers(in_root(policy, account("alice"), 1)).empty());
    // What a group says of the network, below an own entry that says something of keys: only a start knows of both.
    const auto joined = parse(head + "users: {alice: {roots: [/srv/a], providers: {openai: {key_file: /etc/k}}}, "
                                     "'%daemon': {roots: [/srv/d], network: {hosts: [a.example]}}}\n");
    CHECK(in_root(joined, account("alice", {daemon_group})).providers.size() == 1);
    CHECK_THROWS_WITH_AS(in_root(joined, account("alice")),
                         doctest::Contains("its key stays outside, but the network of these sessions is full"), PolicyError);
}

TEST_CASE("the providers of an inner level replace those of the outer one")
{
    const auto policy = parse(head + "network: {hosts: []}\nproviders: {anthropic: {key_file: /etc/k}}\n"
                                     "users: {alice: {roots: [/srv/a], providers: {}}, bob: {roots: [/srv/b]}}\n");
    CHECK(in_root(policy, account("alice")).providers.empty());
    CHECK(in_root(policy, account("bob")).providers.size() == 1);
}

TEST_CASE("a start that closes the network gives up the route to providers, and their keys stay outside")
{
    const auto policy = parse(head + "network: {hosts: [localhost:5432, a.example]}\nproviders: {anthropic: {key_file: /etc/k}}\n"
                                     "users: {alice: {roots: [/srv/a]}}\n");
    const auto none = narrowed(policy, {LeftNetwork::none, false, false});
    CHECK((none.network.mode == NetworkMode::none && none.network.hosts.empty() && routed_providers(none).empty()));
    CHECK(none.providers.size() == 1);
    const auto loopback = narrowed(policy, {LeftNetwork::loopback, false, false});
    CHECK((loopback.network.mode == NetworkMode::hosts && loopback.network.hosts.size() == 1 && routed_providers(loopback).empty()));
    CHECK(loopback.providers.size() == 1);
    CHECK(routed_providers(narrowed(policy, {LeftNetwork::all, true, true})).size() == 1);
}

TEST_CASE("a host that the policy does not let its user add is refused with the place that says so")
{
    const auto of = [](const std::string &network, const std::string &host) {
        try {
            static_cast<void>(pi_agent::granted(parse(head + "network: " + network + "\nusers: {alice: {roots: [/srv/a]}}\n"),
                                                std::vector<std::string>{host}));
        } catch (const Failure &failure) {
            CHECK(failure.kind() == FailureKind::start_asks);
            return std::string(failure.what());
        }
        return std::string();
    };
    CHECK(of("{hosts: [], may_grant: ['*.debian.org:80']}", "deb.debian.org:80").empty());
    CHECK(of("{hosts: [a.example]}", "a.example").empty()); // there already
    CHECK(of("{hosts: [], may_grant: ['*.debian.org:80']}", "debian.org:80") ==
          "denied: --pi-agent-allow debian.org:80 is not among what the policy lets you add (p.yaml:3:10, may_grant: *.debian.org:80); "
          "ask the administrator");
    CHECK(of("{hosts: [], may_grant: [169.254.0.0/16]}", "169.254.0.1").empty());
    CHECK(contains(of("{hosts: [], may_grant: [169.254.0.0/16]}", "169.254.169.254"), "is not among what the policy lets you add"));
    CHECK(contains(of("{hosts: [], may_grant: ['64::/16']}", "64:ff9b::a9fe:a9fe"), "is not among what the policy lets you add"));
    CHECK(contains(of("{hosts: []}", "a.example"), "may_grant: nothing"));
    CHECK(contains(of("full", "a.example"), "has no meaning here"));
    CHECK(contains(of("none", "a.example"), "has no meaning here"));
    CHECK(contains(of("{hosts: []}", "https://a.example/x"), "is a URL; name the host alone: a.example"));
    CHECK(contains(of("{hosts: []}", "a\n.example"), "\\x0a"));
}

} // namespace effective_test
