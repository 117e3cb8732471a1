// Agent accounts: admin/host/host_things.hpp
#include "admin/host/host_things.hpp"

#include "support/policy_text.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace accounts_test {

namespace {

std::string names_of(const std::vector<AgentAccount> &accounts)
{
    std::string names;
    for (const auto &account : accounts)
        names += (names.empty() ? "" : " ") + account.name;
    return names;
}

std::vector<std::string> members(const std::string &group)
{
    if (group != "devs") return {};
    return {"alice", "carol", "dave", "pi-agent-carol", "root", "Odd"};
}

std::string problems_of_accounts(const Policy &policy)
{
    Problems problems;
    check_agent_accounts(policy, needed_agent_accounts(policy, group_members), problems);
    try {
        problems.throw_if_any();
    } catch (const PolicyError &error) {
        return error.what();
    }
    return "";
}

} // namespace

TEST_CASE("shared accounts are one, and those that run_as names")
{
    const auto policy = parse("version: 1\nagent: {accounts: shared, user: ai}\nusers: {alice: {roots: [/srv/a]}, bob: {roots: [/srv/b], "
                              "run_as: helper}, '%devs': {roots: [/srv/d]}}\n");
    CHECK(names_of(needed_agent_accounts(policy, members)) == "ai helper");
    const auto named = parse("version: 1\nagent: {accounts: shared, user: ai}\nusers: {bob: {roots: [/srv/b], run_as: helper}}\n");
    CHECK(names_of(needed_agent_accounts(named, members)) == "helper");
}

TEST_CASE("per-user accounts are one for each user and each member of a group, agents and root left out")
{
    const auto policy = parse("version: 1\nagent: {accounts: per-user}\nusers: {alice: {roots: [/srv/a]}, bob: {roots: [/srv/b], run_as: "
                              "helper}, '%devs': {roots: [/srv/d]}}\n");
    CHECK(names_of(needed_agent_accounts(policy, members)) == "pi-agent-alice helper pi-agent-carol pi-agent-dave");
}

TEST_CASE("nobody whom the host does not know gets an account")
{
    const auto policy = parse("version: 1\nagent: {accounts: per-user}\nusers: {alice: {roots: [/srv/a]}, '%devs': {roots: [/srv/d]}}\n");
    const auto is_known = [](const std::string &user) { return user == "dave"; };
    CHECK(names_of(needed_agent_accounts(policy, members, is_known)) == "pi-agent-dave");
}

TEST_CASE("numbers of agents are those of the system and of a range of their own, and free ones belong to nobody")
{
    CHECK(is_agents_number(Uid(999)));
    CHECK_FALSE(is_agents_number(Uid(1000)));
    CHECK_FALSE(is_agents_number(Uid(69999)));
    CHECK(is_agents_number(Uid(70000)));
    CHECK_FALSE(is_agents_number(Uid(100000)));
    for (const auto number : free_numbers(3)) {
        CHECK_FALSE(find_account(Uid(number)));
        CHECK_FALSE(group_name(Gid(number)));
    }
}

TEST_CASE("what is missing becomes lines for systemd-sysusers")
{
    const auto policy = parse("version: 1\nagent: {accounts: shared, user: ai, group: agents}\nusers: {alice: {roots: [/srv/a]}, bob: "
                              "{roots: [/srv/b], run_as: helper}}\n");
    MissingAccounts missing;
    missing.group = true;
    missing.accounts = needed_agent_accounts(policy, members);
    missing.members = {"old"};
    CHECK(sysusers_text(policy, missing) == "g agents - -\n"
                                            "u ai -:agents \"pi-agent\" /var/lib/pi-agent -\n"
                                            "u helper - \"pi-agent of bob\" /var/lib/pi-agent -\n"
                                            "m helper agents\n"
                                            "m old agents\n");
    CHECK(sysusers_text(policy, {}).empty());
    missing.group = false;
    missing.members.clear();
    const auto numbered = sysusers_text(policy, missing, {70005}); // the shared account keeps a number of the system's
    CHECK(numbered == "u ai -:agents \"pi-agent\" /var/lib/pi-agent -\n"
                      "u helper 70005 \"pi-agent of bob\" /var/lib/pi-agent -\n"
                      "m helper agents\n");
}

TEST_CASE("an account that exists is not missing, but may lack the group")
{
    const auto policy = parse("version: 1\nagent: {user: daemon, group: sys}\nusers: {alice: {roots: [/srv/a]}}\n");
    const auto missing = find_missing(policy, needed_agent_accounts(policy, members));
    CHECK_FALSE(missing.group);
    CHECK(missing.accounts.empty());
    CHECK(missing.members == std::vector<std::string>{"daemon"});
}

TEST_CASE("an agent's account that is in such a group, or has a user's uid, is an error that names it")
{
    CHECK(contains(
        problems_of_accounts(parse("version: 1\nagent: {user: daemon, accounts: shared}\nusers: {'%daemon': {roots: [/srv/a]}}\n")),
        "p.yaml:2:8: agent.user: the agent's account 'daemon' is in the group 'daemon'; take it out"));
    CHECK(contains(problems_of_accounts(parse("version: 1\nagent: {group: shadow}\nusers: {alice: {roots: [/srv/a]}}\n")),
                   "agent.group: 'shadow' is a group of administrators"));
    CHECK(problems_of_accounts(parse("version: 1\nagent: {user: daemon}\nusers: {bin: {roots: [/srv/a]}}\n")).empty());
}

TEST_CASE("a missing account that systemd-sysusers cannot make is an error, which tells whose name to choose")
{
    const std::string users = "users: {john.doe: {roots: [/srv/a]}, helper: {roots: [/srv/b]}}\n";
    CHECK(contains(
        problems_of_accounts(parse("version: 1\nagent: {accounts: per-user}\n" + users)),
        "systemd-sysusers cannot create the account 'pi-agent-john.doe': a dot, or more than 31 characters; give john.doe an entry "
        "of their own with another name (run_as: pi-agent-john_doe)"));
    CHECK(problems_of_accounts(parse("version: 1\nagent: {accounts: per-user, create_user: false}\n" + users)).empty());
    CHECK(contains(problems_of_accounts(parse("version: 1\nagent: {accounts: shared, user: a.i}\n" + users)), "name another account"));
    CHECK(creatable_name("pi-agent-" + std::string(30, 'x')).size() == 31);
}

TEST_CASE("a user in the agents' group could reach the program, unless it is not hidden at all")
{
    const std::string text = "version: 1\nagent: {group: bin}\nusers: {bin: {roots: [/srv/a]}}\n";
    CHECK(contains(problems_of_accounts(parse(text)), "the user 'bin' is in the group 'bin' and so can reach the agent's program"));
    CHECK(problems_of_accounts(parse(text + "wrapper: {hide_direct_binary: false}\n")).empty());
}

TEST_CASE("finds members by their primary group too")
{
    const auto names = group_members("daemon");
    CHECK(std::find(names.begin(), names.end(), "daemon") != names.end());
    CHECK(group_members("no-such-group-here").empty());
}

} // namespace accounts_test
