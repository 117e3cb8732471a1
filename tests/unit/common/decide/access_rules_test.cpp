// common/decide/decision.hpp
#include "common/decide/decision.hpp"

#include "support/access.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace access_rules_test {

namespace {

std::string refused(const Policy &policy, const Account &caller)
{
    const auto result = find_access_rules(policy, caller, "p.yaml");
    REQUIRE(std::holds_alternative<NotAuthorised>(result));
    return std::get<NotAuthorised>(result).text;
}

const std::string head = "version: 1\nagent: {accounts: shared}\n";

} // namespace

TEST_CASE("a user's own entry gives its roots, config, account and place")
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [~/p, /srv/a], env: {A: x}}}\n");
    const auto rules = granted(policy, account("alice"));
    CHECK(rules.entry == "users.alice");
    CHECK(to_string(rules.where) == "p.yaml:2:9");
    CHECK(rules.roots.size() == 2);
    CHECK_FALSE(rules.roots[0].by_group);
    CHECK(rules.config_directory == "/home/alice/.pi/agent");
    CHECK(rules.agent_account == "pi-agent");
    CHECK(rules.env.at("A") == "x");
}

TEST_CASE("who is called like an agent's account is a person if the policy names them, and the other's agent has the number")
{
    const auto policy = parse("version: 1\nagent: {accounts: per-user}\n"
                              "users: {alice: {roots: [/srv/a]}, pi-agent-alice: {roots: [/srv/b]}, '%daemon': {roots: [/srv/d]}}\n");
    CHECK(granted(policy, account("alice")).agent_account == "pi-agent-1000");
    CHECK(granted(policy, account("pi-agent-alice")).agent_account == "pi-agent-pi-agent-alice");
    CHECK(contains(refused(policy, account("pi-agent-bob", {daemon_group})), "is an agent's own"));
    Account made = account("pi-agent-alice");
    made.home = "/var/lib/pi-agent"; // as apply makes them
    CHECK(contains(refused(policy, made), "is an agent's own"));
}

TEST_CASE("whoever has no entry is told which was looked for")
{
    const auto policy = parse(head + "users: {alice: {roots: [/srv/a]}, '%daemon': {roots: [/srv/d]}}\n");
    CHECK(contains(refused(policy, account("eve", {sys_group})), "the policy p.yaml does not authorise eve: it has no entry users.eve"));
    CHECK(contains(refused(policy, account("daemon")), "does not authorise daemon"));
}

TEST_CASE("an own entry beats group entries, wherever it stands")
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [/srv/d]}, alice: {roots: [/srv/a]}}\n");
    const auto rules = granted(policy, account("alice", {daemon_group}));
    CHECK(rules.entry == "users.alice");
    CHECK(rules.roots.size() == 1);
}

TEST_CASE("without an own entry the roots of all groups join, each with its group")
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [/srv/d], env: {A: x}}, '%sys': {roots: [/srv/s], config: .c, env: {A: x, "
                                     "B: y}}, '%bin': {roots: [/srv/b]}}\n");
    const auto rules = granted(policy, account("bob", {sys_group, daemon_group}));
    CHECK(rules.entry == "users.%daemon, users.%sys");
    REQUIRE(rules.roots.size() == 2);
    CHECK(rules.roots[0].by_group == Gid(daemon_group));
    CHECK(rules.roots[1].by_group == Gid(sys_group));
    CHECK(rules.config_directory == "/home/bob/.c");
    CHECK(rules.env.size() == 2);
}

TEST_CASE("groups that contradict each other are an error with both names")
{
    for (const auto *pair : {"config: a|config: b", "run_as: x|run_as: y", "ssh: {key: x}|ssh: {key: y}",
                             "signing: {key: x}|signing: {key: y}", "env: {A: x}|env: {A: y}"}) {
        const std::string text = pair;
        const auto bar = text.find('|');
        const auto policy = parse(head + "users: {'%daemon': {roots: [/srv/d], " + text.substr(0, bar) + "}, '%sys': {roots: [/srv/s], " +
                                  text.substr(bar + 1) + "}}\n");
        CHECK_THROWS_WITH_AS(static_cast<void>(find_access_rules(policy, account("bob", {daemon_group, sys_group}), "p.yaml")),
                             doctest::Contains("another group of bob sets another value"), PolicyError);
        CHECK(granted(policy, account("bob", {sys_group})).entry == "users.%sys");
    }
}

TEST_CASE("per-user accounts carry the user's name, run_as another")
{
    const auto policy = parse("version: 1\nagent: {accounts: per-user, user: ai}\nusers: {alice: {roots: [/srv/a]}, bob: {roots: [/srv/a], "
                              "run_as: helper}, '%daemon': {roots: [/srv/d]}}\n");
    CHECK(granted(policy, account("alice")).agent_account == "ai-alice");
    CHECK(granted(policy, account("bob")).agent_account == "helper");
    CHECK(granted(policy, account("carol", {daemon_group})).agent_account == "ai-carol");
    for (const auto *name : {"a2345678901234567890123456789012", "Alice", "alice.smith", "CORP\\alice"}) {
        const auto user = account(name, {daemon_group});
        CHECK(granted(policy, user).agent_account == "ai-" + std::to_string(user.uid.value()));
    }
    const auto large =
        parse("version: 1\nagent: {accounts: per-user, user: a2345678901234567890123456789012}\nusers: {'%daemon': {roots: [/srv/d]}}\n");
    CHECK(contains(refused(large, account("Alice", {daemon_group})), "longer than 32"));
}

TEST_CASE("root, agents and odd names are refused whatever their groups")
{
    const auto policy =
        parse("version: 1\nagent: {accounts: per-user}\nusers: {'%daemon': {roots: [/srv/d]}, bob: {roots: [/srv/b], run_as: helper}}\n");
    auto root = account("root", {daemon_group});
    root.uid = Uid(0);
    CHECK(contains(refused(policy, root), "root cannot run the agent"));
    for (const auto *name : {"pi-agent", "pi-agent-alice", "helper"})
        CHECK_MESSAGE(contains(refused(policy, account(name, {daemon_group})), "is an agent's own"), name);
    for (const auto *name : {"a/b", "..", "0", "x\ny"})
        CHECK_MESSAGE(contains(refused(policy, account(name, {daemon_group})), "cannot be used"), name);
}

TEST_CASE("an absolute config directory stays, and a home of / gives no double slash")
{
    const auto policy = parse("version: 1\nusers: {alice: {roots: [/srv/a], config: /etc/pi}}\n");
    CHECK(granted(policy, account("alice")).config_directory == "/etc/pi");
    auto rootless = account("alice");
    rootless.home = "/";
    CHECK(granted(parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\n"), rootless).config_directory == "/.pi/agent");
}

} // namespace access_rules_test
