// Explanations: admin/diagnose/explain.hpp
#include "admin/diagnose/explain.hpp"

#include "support/forked.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <grp.h>
#include <nlohmann/json.hpp>

using namespace pi_agent;
using namespace pi_agent::test;

namespace explain_test {

namespace {

// A user whom this process can look for: itself, or as root an account of no consequence.
struct Somebody {
    TemporaryDirectory directory;
    Account user;
    Policy policy;

    Somebody()
        : user{"alice",
               Uid(::geteuid() == 0 ? 65534 : ::geteuid()),
               Gid(::geteuid() == 0 ? 65534 : ::getegid()),
               directory.make("home"),
               {}},
          policy(parse("version: 1\nusers: {alice: {roots: [~/projects, ~/absent], env: {A: x}}}\n"))
    {
        directory.make("home/projects/a");
        std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
        if (::geteuid() == 0) user.groups = {65534};
    }

    Explanation explained(const std::optional<std::string> &where) const
    {
        return explain(policy, "p.yaml", Observer::self(), user, where);
    }
};

} // namespace

TEST_CASE("on one screen is what users ask first, and what keeps them from starting")
{
    const auto shown =
        on_one_screen("user:     a\nconfig:   x\nroots:\n  ~/p is /home/a/p\nlimits:   y\n          no start is possible: z\n");
    CHECK(shown.starts_with("user:     a\nroots:\n  ~/p is /home/a/p\n          no start is possible: z\nmore:     "));
}

TEST_CASE("a directory is explained with the roots, as text and as JSON")
{
    const Somebody somebody;
    const auto explanation = somebody.explained(somebody.directory / "home/projects/a");
    const auto text = to_text(explanation);
    CHECK(contains(text, "entry:    users.alice (p.yaml:2:9)"));
    CHECK(contains(text, "~/projects (p.yaml:2:25) is " + somebody.directory.path() + "/home/projects"));
    CHECK(contains(text, "~/absent (p.yaml:2:37): unusable: the root '~/absent' (" + somebody.directory.path() +
                             "/home/absent) does not exist; create it or remove it from roots"));
    CHECK(contains(text, "HOME=/var/lib/pi-agent/users/alice/home"));
    const auto json = to_json(explanation);
    CHECK(json["authorised"] == true);
    CHECK(json["directory"]["allowed"] == true); // as a start does: the other root is out of the way
    CHECK(json["roots"][0]["state"] == "usable");
    CHECK(json["roots"][1]["state"] == "unusable");
    CHECK(json["agent"]["account"] == "pi-agent");
    CHECK(json["environment"]["variables"]["A"] == nlohmann::json{{"value", "x"}, {"hidden", false}, {"from", "users.*.env"}});
    CHECK(contains(text, "  A=x (users.*.env)\n"));
}

TEST_CASE("a directory is refused while no root exists, or one with rules of its own does not")
{
    Somebody somebody;
    const auto reason_with = [&](const std::string &roots) {
        somebody.policy = parse("version: 1\nusers: {alice: {roots: [" + roots + "]}}\n");
        const auto directory = to_json(somebody.explained(somebody.directory / "home/projects/a"))["directory"];
        CHECK(directory["allowed"] == false);
        return directory["reason"].get<std::string>();
    };
    CHECK(contains(reason_with("~/absent"), "p.yaml:2:25: users.alice.roots: the root '~/absent' ("));
    const std::string ruled = reason_with("~/projects, {path: ~/absent, network: none}");
    CHECK(contains(ruled, "it has rules of its own, so until then alice cannot start pi in other roots either"));
    CHECK(contains(reason_with("~/projects/b, ~/projects/c"), "/home/projects/b) does not exist"));
}

TEST_CASE("a directory is allowed where every root can be used")
{
    Somebody somebody;
    somebody.policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n");
    const auto explanation = somebody.explained(somebody.directory / "home/projects/a");
    const std::string root = somebody.directory.path() + "/home/projects";
    CHECK(contains(to_text(explanation), "allowed: it is in the root " + root + " (p.yaml:2:25)"));
    const auto json = to_json(explanation);
    CHECK(json["directory"]["allowed"] == true);
    REQUIRE(json["directory"].contains("root"));
    CHECK(json["directory"]["root"] == root);
}

TEST_CASE("what holds in the directory is explained, with the level that says it")
{
    Somebody somebody;
    somebody.policy =
        parse("version: 1\nnetwork: none\nusers: {alice: {roots: [{path: ~/projects, scope: project}], limits: {tasks: 99}}}\n");
    const auto explanation = somebody.explained(somebody.directory / "home/projects/a");
    const auto text = to_text(explanation);
    CHECK(contains(text, "projects: only the repository that holds the directory"));
    CHECK(contains(text, "network: none (network, p.yaml:2:10)\n"));
    CHECK(contains(text, "limits.tasks: 99 (users.alice.limits.tasks, p.yaml:3:"));
    CHECK(contains(text, "projects.scope: project (users.alice.roots[0].scope, p.yaml:3:"));
    const auto json = to_json(explanation);
    CHECK(json["said"]["projects.scope"]["key"] == "users.alice.roots[0].scope");
    CHECK(json["said"]["network"]["value"] == "none");
    CHECK(json["said"].size() == 3);
    CHECK(to_json(somebody.explained(std::nullopt))["said"].size() == 2); // in no directory, no root says anything
}

TEST_CASE("a value that two levels say together is explained with both places")
{
    Somebody somebody;
    somebody.policy = parse("version: 1\nsettings: {a: 1}\nusers: {alice: {roots: [~/projects], settings: {b: 2}}}\n");
    const auto explanation = somebody.explained(std::nullopt);
    CHECK(contains(to_text(explanation), "(users.alice.settings, p.yaml:3:48; settings, p.yaml:2:11)\n"));
    const auto said = to_json(explanation)["said"]["settings"];
    CHECK(said["key"] == "users.alice.settings");
    CHECK(said["also"] == nlohmann::json::array({{{"key", "settings"}, {"where", "p.yaml:2:11"}}}));
}

TEST_CASE("each variable is explained with what sets it, and what looks like a secret is hidden")
{
    Somebody somebody;
    somebody.directory.make("home/.pi/agent");
    somebody.directory.write("home/.pi/agent/env", "A=mine\nB=two\nMY_TOKEN=hush\nPATH=/tmp\n");
    const auto explanation = somebody.explained(std::nullopt);
    const std::string file = somebody.directory / "home/.pi/agent/env";
    const auto text = to_text(explanation);
    CHECK(contains(text, "  A=x (users.*.env)\n"));
    CHECK(contains(text, "  B=two (" + file + ":2)\n"));
    CHECK(contains(text, "  MY_TOKEN=(hidden) (" + file + ":3)\n"));
    CHECK(contains(text, file + ":4: PATH is left out: it is set by pi-agent itself"));
    CHECK(contains(text, "  SHELL=/bin/bash (pi-agent)\n"));
    CHECK_FALSE(contains(text + to_json(explanation).dump(), "hush"));
    somebody.directory.write("home/.pi/agent/env", "A\n");
    CHECK(contains(to_text(somebody.explained(std::nullopt)), "no start is possible: " + file + ":1: this line has no '='"));
}

TEST_CASE("it is explained whether the agent gets the user's git identity and notes about its box")
{
    Somebody somebody;
    CHECK(contains(to_text(somebody.explained("/usr")), "\ngit:      commits carry the user's own user.name and user.email"));
    CHECK(contains(to_text(somebody.explained("/usr")), "\nnotes:    the agent is told about its sandbox in /AGENTS.md"));
    somebody.policy.git_identity = somebody.policy.box_notes = false;
    CHECK(contains(to_text(somebody.explained("/usr")), "(git_identity: false)"));
    CHECK(contains(to_text(somebody.explained("/usr")), "(box_notes: false)"));
    const auto json = to_json(somebody.explained("/usr"));
    CHECK((json["git_identity"] == false && json["box_notes"] == false));
}

TEST_CASE("the network is explained with its mode, the place that sets it and every range")
{
    Somebody somebody;
    CHECK(contains(to_text(somebody.explained("/usr")), "\nnetwork:  full: the host's, without restriction"));
    CHECK(to_json(somebody.explained("/usr"))["network"] == nlohmann::json{{"mode", "full"}, {"allowed", nlohmann::json::array()}});
    const auto with = [&](const std::string &value) {
        somebody.policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nnetwork: " + value + "\n");
        return somebody.explained("/usr");
    };
    CHECK(contains(to_text(with("none")), "\nnetwork:  none (p.yaml:3:10): a loopback of its own"));
    CHECK(to_json(with("none"))["network"]["mode"] == "none");
    CHECK(contains(to_text(with("loopback")), "\nnetwork:  loopback (p.yaml:3:10): 127.0.0.0/8, ::1/128 of this host"));
    CHECK(contains(to_text(with("[10.0.0.0/8, fd00::/8]")), "\nnetwork:  only 10.0.0.0/8, fd00::/8 (p.yaml:3:10), in both directions"));
    CHECK(to_json(with("[10.0.0.0/8]"))["network"] == nlohmann::json{{"mode", "list"}, {"allowed", {"10.0.0.0/8"}}});
}

TEST_CASE("under no network, keys of providers stay outside and no provider is reached, with a directory or without")
{
    Somebody somebody;
    const std::string text = "version: 1\nusers: {alice: {roots: [~/projects]}}\nproviders: {openai: {key_file: /etc/k}}\n";
    somebody.policy = parse(text + "network: {hosts: []}\n");
    CHECK(contains(to_text(somebody.explained(std::nullopt)), "openai at api.openai.com: its key stays outside (p.yaml:3:13)"));
    CHECK(to_json(somebody.explained(std::nullopt))["providers"][0]["reached"] == true);
    somebody.policy = parse(text + "network: none\n");
    for (const auto &where : {std::optional<std::string>(), std::optional(somebody.directory / "home/projects/a")}) {
        const auto explained = somebody.explained(where);
        CHECK(contains(to_text(explained), "its key stays outside, and this network does not lead there"));
        CHECK(to_json(explained)["providers"][0]["reached"] == false);
    }
}

TEST_CASE("it is explained where a session's temporary files lie")
{
    Somebody somebody;
    CHECK(contains(to_text(somebody.explained("/usr")), "\nscratch:  on the disk of the state directory (scratch: disk): /tmp"));
    CHECK(contains(to_text(somebody.explained("/usr")), "TMPDIR=/tmp there"));
    CHECK(to_json(somebody.explained("/usr"))["scratch"] == "disk");
    somebody.policy.scratch = ScratchKind::tmpfs;
    CHECK(contains(to_text(somebody.explained("/usr")), "\nscratch:  in memory, at most 20% of it (scratch: tmpfs): /tmp"));
    CHECK(to_json(somebody.explained("/usr"))["scratch"] == "tmpfs");
}

TEST_CASE("a directory in what the policy masks is refused, as a start is")
{
    Somebody somebody;
    somebody.policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\nprojects: {mask: [a]}\n");
    const auto explained = somebody.explained(somebody.directory / "home/projects/a");
    CHECK(contains(to_text(explained), "is in what the policy masks in "));
    CHECK(to_json(explained)["directory"]["allowed"] == false);
}

TEST_CASE("a directory outside is refused with the roots")
{
    Somebody somebody;
    somebody.policy = parse("version: 1\nusers: {alice: {roots: [~/projects]}}\n");
    CHECK(contains(to_text(somebody.explained("/usr")), "refused: denied: /usr is outside the project roots of alice"));
    CHECK(to_json(somebody.explained("/usr"))["directory"]["allowed"] == false);
    CHECK(contains(to_text(somebody.explained("/no-such\n")), "refused: cannot open /no-such\\x0a: "));
}

TEST_CASE("what another user can reach is said to be unverified, not guessed")
{
    const auto json = nlohmann::json::parse(in_child([] {
        // Root can look for everybody, so it is not root who looks.
        if (!not_root() && (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0)) return std::string("null");
        Somebody somebody;
        somebody.user.uid = Uid(somebody.user.uid.value() + 1);
        return to_json(somebody.explained("/usr")).dump();
    }));
    CHECK(json["roots"][0]["state"] == "not verified");
    CHECK(json["directory"]["allowed"].is_null());
}

TEST_CASE("who is not authorised, and a stopped wrapper, are said first")
{
    const Somebody somebody;
    auto eve = somebody.user;
    eve.name = "eve";
    const auto refused = explain(somebody.policy, "p.yaml", Observer::self(), eve, std::nullopt);
    CHECK(contains(to_text(refused), "not authorised: the policy p.yaml does not authorise eve"));
    CHECK(to_json(refused)["authorised"] == false);
    auto stopped = somebody.policy;
    stopped.wrapper.enable = false;
    CHECK(to_text(explain(stopped, "p.yaml", Observer::self(), somebody.user, std::nullopt)).find("wrapper.enable is false") < 10);
}

TEST_CASE("what this host's systemd has, or why it cannot serve, is part of the explanation")
{
    const Somebody somebody;
    auto explanation = somebody.explained(std::nullopt);
    CHECK(to_json(explanation)["systemd"] == nullptr);
    explanation.systemd = systemd_features("252.39-1~deb12u1");
    CHECK(contains(to_text(explanation), "systemd:  252: sessions share the host's process numbers"));
    CHECK(contains(to_text(explanation), "entries for other accounts and groups cannot be copied"));
    CHECK(to_json(explanation)["systemd"]["private_pids"] == false);
    CHECK(to_json(explanation)["systemd"]["identity_ids"] == false);
    explanation.systemd = systemd_features("257.9");
    CHECK(contains(to_text(explanation), "systemd:  257: sessions have process numbers of their own (PrivatePIDs=, from 257 on)"));
    CHECK(contains(to_text(explanation), "copies keep entries for accounts and groups with ids below 65536"));
    CHECK(to_json(explanation)["systemd"]["version"] == 257);
    explanation.systemd = Failure(ExitStatus::unavailable, "too old");
    CHECK(contains(to_text(explanation), "systemd:  no start is possible: too old"));
    CHECK(to_json(explanation)["systemd"]["reason"] == "too old");
}

} // namespace explain_test
