// The policy against the host: admin/diagnose/faults.hpp
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/explain.hpp"
#include "admin/text/terminal.hpp"
#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace check_test {

namespace {

struct Told {
    std::string problems, gone;
};

Told look_at(const std::string &text)
{
    const auto policy = parse(text);
    const auto observer = Observer::self();
    HostCheck check{policy, observer, Means::installed};
    check_host(check);
    const auto text_of = [](const std::vector<Diagnostic> &found) { return found.empty() ? std::string() : PolicyError(found).what(); };
    return {text_of(check.problems.all()), text_of(check.gone)};
}

std::string host_problems(const std::string &text)
{
    return look_at(text).problems;
}

const std::string head = "version: 1\nagent: {binary: /usr/bin/env, accounts: shared}\n";

} // namespace

TEST_CASE("users and groups that the host does not have are told with their place, and are no errors; a group of administrators is one")
{
    const auto user = look_at(head + "users: {no-such-user: {roots: [/srv/a]}}\n");
    CHECK(contains(user.gone, "p.yaml:3:9: users.no-such-user: this host has no user 'no-such-user'"));
    const auto group = look_at(head + "users: {'%no-such-group': {roots: [/srv/a]}}\n");
    CHECK(contains(group.gone, "p.yaml:3:9: users.%no-such-group: this host has no group"));
    CHECK((user.problems.empty() && group.problems.empty()));
    CHECK(contains(host_problems(head + "users: {'%adm': {roots: [/srv/a]}}\n"),
                   "p.yaml:3:9: users.%adm: 'adm' is a group whose members control the host"));
}

TEST_CASE("roots that their user cannot reach are errors with their place" * doctest::skip(not_root()))
{
    const auto missing = look_at(head + "users: {daemon: {roots: [/usr/no-such-root]}}\n");
    CHECK(contains(missing.gone,
                   "p.yaml:3:26: users.daemon.roots[0]: the root '/usr/no-such-root' does not exist; create it or remove it from roots"));
    CHECK(missing.problems.empty());
    CHECK(contains(host_problems(head + "users: {daemon: {roots: [/root/x]}}\n"),
                   "the root '/root/x' is not accessible to daemon; the owner of a directory above it"));
    CHECK(host_problems(head + "users: {daemon: {roots: [/usr/share]}}\n").empty());
}

TEST_CASE("a network that this host cannot enforce is an error, whichever level says it" * doctest::skip(not_root()))
{
    const auto is_refused = [](const std::string &text) {
        const auto policy = parse(text);
        const auto observer = Observer::self();
        HostCheck check{policy, observer};
        check_host(check);
        return contains(PolicyError(check.problems.all()).what(), "cannot enforce the policy's network");
    };
    for (const std::string network : {"loopback", "[10.0.0.0/8]", "none", "full"}) {
        const bool of_all = is_refused(head + "network: " + network + "\nusers: {daemon: {roots: [/usr/share]}}\n");
        CHECK_MESSAGE(is_refused(head + "users: {daemon: {roots: [/usr/share], network: " + network + "}}\n") == of_all, network);
        CHECK_MESSAGE(is_refused(head + "users: {daemon: {roots: [{path: /usr/share, network: " + network + "}]}}\n") == of_all, network);
    }
}

TEST_CASE("what a user's own entry and their group's cannot say together is told with the root, or for all of them")
{
    const auto found = [](const std::string &of_group, const std::string &own) {
        const auto policy = parse("version: 1\nagent: {binary: /usr/bin/env, accounts: per-user}\nusers:\n  '%daemon': {roots: [/srv/a], " +
                                  of_group + "}\n  daemon: {roots: [/srv/b, {path: /srv/c, network: none}], " + own + "}\n");
        return std::string(PolicyError(find_refused_starts(policy)).what());
    };
    const std::string outside = "network: {hosts: [github.com]}, providers: {anthropic: {key_file: /etc/k}}";
    const auto told = found(outside, "network: full");
    CHECK_MESSAGE(contains(told, ", so daemon cannot start pi in /srv/b; "), told);
    CHECK_FALSE(contains(told, "/srv/c"));
    CHECK(found(outside, "network: {hosts: []}").empty());
    CHECK(contains(found("readable: [~/data]", "toolchains: {readable: [~/data/x]}"), "for the same place, so daemon cannot start pi; "));
}

TEST_CASE("wildcards that mean less than they seem to are warnings, whichever level says them")
{
    const std::string projects = "projects: {mask: ['**/keys', '*.pem', 'a/**', 'b/*'], protect: ['src/*.sh', 'app/[id]']}\n";
    const auto found = find_odd_patterns(parse(head + projects + "users: {daemon: {roots: [{path: /srv/a, mask: ['a/**/b']}, /srv/b]}}\n"));
    REQUIRE(found.size() == 3);
    CHECK(contains(to_string(found[0]), "p.yaml:3:19: projects.mask: '**/keys' does not match at any depth"));
    CHECK(contains(to_string(found[1]), "projects.protect: 'src/*.sh' is the one path that is written so"));
    CHECK(contains(to_string(found[2]), "users.daemon.roots[0].mask: 'a/**/b' does not match"));
    const auto classes =
        find_odd_patterns(parse(head + "users: {daemon: {roots: [/srv/a]}}\nconfig: {classes: {'*.key': never, prompts: seed}}\n"));
    REQUIRE(classes.size() == 1);
    CHECK(contains(to_string(classes[0]), "config.classes.*.key: is the one path that is written so"));
}

TEST_CASE("the policy alone is judged without this host")
{
    const TemporaryDirectory directory;
    const auto elsewhere = directory.write("elsewhere.yaml", head + "users: {no-such-user: {roots: [/srv/a]}}\n");
    CHECK(contains(PolicyError(check_policy(elsewhere).warnings).what(), "this host has no user 'no-such-user'"));
    const auto report = check_policy(elsewhere, CheckScope::policy_only);
    CHECK(report.errors.empty());
    CHECK(report.entries == 1);
    CHECK(contains(to_text(report), "not verified: this host"));
    const auto broken = directory.write("broken.yaml", head + "users: {no-such-user: {roots: [/]}}\n");
    CHECK(check_policy(broken, CheckScope::policy_only).errors.size() == 1);
}

TEST_CASE("a draft need not be trusted, but must be a file and a policy")
{
    const TemporaryDirectory directory;
    const auto problems = [&](const std::string &file) { return PolicyError(check_policy(file, CheckScope::policy_only).errors); };
    const auto good = directory.write("good.yaml", head + "users: {alice: {roots: [/srv/a]}}\n");
    CHECK(check_policy(good, CheckScope::policy_only).errors.empty());
    const auto bad = directory.write("bad.yaml", "version: 1\nusers: {}\n");
    CHECK(contains(problems(bad).what(), "bad.yaml:2:8: users: nobody is authorised"));
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(check_policy(directory / "fifo")), doctest::Contains("is not a regular file"), Failure);
    CHECK_THROWS_AS(static_cast<void>(check_policy(directory / "absent")), SystemFailure);
    const auto large = directory.write("large.yaml", std::string(3U << 20U, ' '));
    CHECK(contains(problems(large).what(), "larger than 1048576 bytes"));
}

TEST_CASE("roots that overlap are warnings of the check, and no mistakes" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    const auto draft = directory.write("draft.yaml", head + "users: {daemon: {roots: [/usr/share]}, bin: {roots: [/usr/share/doc]}}\n");
    const auto report = check_policy(draft);
    const std::string warned = PolicyError(report.warnings).what();
    CHECK(contains(warned, "users.bin.roots[0]: /usr/share/doc lies in /usr/share (users.daemon.roots[0], "));
    CHECK_FALSE(contains(PolicyError(report.errors).what(), "roots"));
}

TEST_CASE("mistakes of the text, between keys and of the host are told at once, with the warnings")
{
    const TemporaryDirectory directory;
    const auto draft = directory.write("draft.yaml", "version: 1\n"
                                                     "agent: {binary: /usr/no-such-agent/bin/pi}\n"
                                                     "sandbox: {method: none}\n"
                                                     "networks: none\n"
                                                     "env: {API_KEY: x}\n"
                                                     "view_paths: [/usr/no-such-1, /usr/no-such-2]\n"
                                                     "users:\n"
                                                     "  no-such-user: {roots: [/, /srv/a], env: {A: 1}}\n"
                                                     "  '%no-such-group': {roots: [/srv/a]}\n");
    const auto report = check_policy(draft);
    const std::string said = PolicyError(report.errors).what();
    for (const auto *word : {"draft.yaml:4:1: networks: unknown key; did you mean 'network'?", "users.no-such-user.roots[0]: '/' is",
                             "users.no-such-user.env.A: must be text", "agent.accounts: missing", "/usr/no-such-agent"})
        CHECK_MESSAGE(contains(said, word), said);
    if (!not_root())
        for (const auto *word : {"/usr/no-such-1", "/usr/no-such-2"})
            CHECK_MESSAGE(contains(said, word), said);
    const std::string warned = PolicyError(report.warnings).what();
    CHECK(contains(warned, "sandbox.method: is 'none', so sessions are not sandboxed"));
    CHECK(contains(warned, "env.API_KEY: looks like a secret"));
    CHECK(to_json(report)["warnings"].size() == report.warnings.size());
}

TEST_CASE("a key that the gate holds is told as one that no session gets, at the level that says so")
{
    const TemporaryDirectory directory;
    const auto warned = [&](const std::string &network) {
        const auto draft =
            directory.write("draft.yaml", head + network + "providers: {anthropic: {key_file: /etc/k}}\nenv: {ANTHROPIC_API_KEY: dummy, " +
                                              "OPENAI_API_KEY: x}\nusers: {alice: {roots: [/srv/a], env: {ANTHROPIC_API_KEY: y}}}\n");
        std::map<std::string, std::string> found;
        for (const auto &one : check_policy(draft, CheckScope::policy_only).warnings)
            found[one.key] = one.problem;
        return found;
    };
    auto found = warned("network: {hosts: []}\n");
    for (const char *key : {"env.ANTHROPIC_API_KEY", "users.alice.env.ANTHROPIC_API_KEY"})
        CHECK_MESSAGE(contains(found[key], "no session gets it, because the gate holds the key of providers.anthropic ("), key);
    CHECK(contains(found["env.OPENAI_API_KEY"], "looks like a secret"));
    CHECK_FALSE(contains(found["env.OPENAI_API_KEY"], "no session gets it"));
    CHECK_FALSE(contains(warned("")["env.ANTHROPIC_API_KEY"], "no session gets it"));
}

TEST_CASE("one mistake is told once")
{
    const TemporaryDirectory directory;
    const auto count = [&](const std::string &text) {
        return check_policy(directory.write("one.yaml", text), CheckScope::policy_only).errors.size();
    };
    const std::string users = "users: {alice: {roots: [/srv/a]}, bob: {roots: [/srv/b]}}\n";
    CHECK(count("version: 1\nagent: {accounts: per_user}\n" + users) == 1);
    CHECK(count("version: 1\nagent: []\n" + users) == 1);
    CHECK(count(head + "sandbox: {method: dokcer, image: 'debian:12'}\n" + users) == 1);
    CHECK(count("version: 1\nagent: {accounts: per-user}\nusers: {-max: {roots: [/srv/a]}}\n") == 1);
}

TEST_CASE("a missing agent is one mistake" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    const auto draft =
        directory.write("draft.yaml", "version: 1\nagent: {binary: /usr/no-such-agent/bin/pi}\nusers: {daemon: {roots: [/usr/share]}}\n");
    std::size_t found = 0;
    for (const auto &error : check_policy(draft).errors)
        if (error.key == "agent.binary") ++found;
    CHECK(found == 1);
}

TEST_CASE("what cannot be read keeps nothing from being told of the rest")
{
    const std::vector<PolicySource> sources = {
        {"/e/policy.yaml", "version: 1\nsandbox: {method: docker}\nview: all\nusers: {alice: {roots: [/]}}\n"},
        {"/e/policy.d/a.yaml", "env: [\n"}};
    const auto reading = read_policy_as_far_as_possible(sources);
    CHECK_FALSE(reading.complete);
    const std::string said = PolicyError(reading.problems).what();
    for (const auto *word : {"/e/policy.d/a.yaml:", "/e/policy.yaml:3:7: view: unknown value 'all'", "users.alice.roots[0]"})
        CHECK_MESSAGE(contains(said, word), said);
    CHECK_FALSE(contains(said, "sandbox.image")); // it may stand in that file
    CHECK(read_policy_as_far_as_possible("/etc/absent-policy.yaml").missing);
    const TemporaryDirectory directory; // not root's alone, so what is there is not missing, and reading it says why
    CHECK_FALSE(read_policy_as_far_as_possible(directory.write("there.yaml", "version: 1\n")).missing);
}

TEST_CASE("as JSON, a problem has null for what it does not have")
{
    CHECK(to_json(Diagnostic{{"p.yaml", 3, 5}, "users.alice", "has no roots", "add some"}) ==
          nlohmann::json::parse(
              R"({"file": "p.yaml", "line": 3, "column": 5, "key": "users.alice", "message": "has no roots", "remedy": "add some"})"));
    CHECK(to_json(Diagnostic{{}, "", "no rg", ""}) ==
          nlohmann::json::parse(R"({"file": null, "line": null, "column": null, "key": null, "message": "no rg", "remedy": null})"));
}

TEST_CASE("a report without errors is valid, and one with them is not")
{
    CheckReport report;
    report.warnings.push_back({{}, "", "no rg", ""});
    CHECK(to_json(report)["valid"] == true);
    CHECK(to_json(report)["warnings"].size() == 1);
    report.errors.push_back({{"p.yaml", 1, 1}, "view", "bad", ""});
    CHECK(to_json(report)["valid"] == false);
    CHECK(to_json(report)["errors"][0]["key"] == "view");
}

TEST_CASE("each line of a message has the program before it, and its place is shown once it can be read again")
{
    const TemporaryDirectory directory;
    const auto file = directory.write("p.yaml", "view: all\n");
    CHECK(show_problems({{{file, 1, 7}, "view", "two\nlines", ""}}, "x: ", read_again) ==
          "x: " + file + ":1:7: view: two\nx: lines\n    1 | view: all\n      |       ^\n");
    CHECK(show_problems({{{directory / "absent", 1, 7}, "", "gone", ""}}, "", read_again) == (directory / "absent") + ":1:7: gone\n");
    CHECK(show_problems({{{file}, "", "whole", ""}}, "", read_again) == file + ": whole\n");
}

} // namespace check_test
