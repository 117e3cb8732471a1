// What the host was before an unfinished change: admin/host/host_things.hpp
#include "admin/host/host_things.hpp"

#include "common/base/error.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace unfinished_apply_test {

namespace {

const std::string main_file = policy_path;

HostBefore one_of_everything()
{
    HostBefore before;
    before.command = "0123456789abcdef";
    before.group = "pi-agent";
    before.state_dir = "/var/lib/pi-agent";
    before.had_group = false;
    before.new_accounts = {"pi-agent-alice"};
    before.new_members = {"helper"};
    before.places = {{"/var/lib/pi-agent/users", std::nullopt}, {"/opt/agent", FormerRights{0, 7, 0755}}};
    before.rule = "alice ALL=(root) NOPASSWD: /x \"\"\n";
    before.policy = PolicyChange{{{main_file, "version: 1\n"}}, {{main_file, "version: 1\nview: host\n"}}};
    return before;
}

} // namespace

TEST_CASE("what is written down reads back unchanged")
{
    const auto before = one_of_everything();
    const auto read = host_before_of(to_text(before));
    CHECK(to_text(read) == to_text(before));
    CHECK(read.new_accounts == before.new_accounts);
    CHECK(read.places.at("/opt/agent")->mode == 0755);
    CHECK(read.places.at("/opt/agent")->gid == 7);
    CHECK_FALSE(read.places.at("/var/lib/pi-agent/users").has_value());
    CHECK(read.rule == before.rule);
    CHECK_FALSE(read.hidden.has_value());
    REQUIRE(read.policy.has_value());
    CHECK(are_same(read.policy->wanted, before.policy->wanted));
    const HostBefore empty;
    CHECK_FALSE(host_before_of(to_text(empty)).policy.has_value());
}

TEST_CASE("a damaged note, one of another version and one that names other files are refused with what to do")
{
    CHECK_THROWS_WITH_AS(static_cast<void>(host_before_of("{}")), doctest::Contains("is damaged; remove it"), Failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(host_before_of("[")), doctest::Contains("is damaged; remove it"), Failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(host_before_of("{\"version\": 2}")), doctest::Contains("another version"), Failure);
    auto elsewhere = one_of_everything();
    elsewhere.policy->before.front().name = "/etc/shadow";
    CHECK_THROWS_WITH_AS(static_cast<void>(host_before_of(to_text(elsewhere))), doctest::Contains("/etc/shadow"), Failure);
}

TEST_CASE("a rule that is not text is not kept, and the message says what to do")
{
    auto before = one_of_everything();
    before.rule = "\xff\xfe";
    CHECK_THROWS_WITH_AS(static_cast<void>(to_text(before)), doctest::Contains("remove it, and run the command again"), Failure);
}

TEST_CASE("of two commands, what the first one found counts, and the second one adds what the first did not look at")
{
    const auto first = one_of_everything();
    HostBefore second;
    second.command = "fedcba9876543210";
    second.group = first.group;
    second.state_dir = first.state_dir;
    second.new_accounts = {"pi-agent-bob"};
    second.places = {{"/var/lib/pi-agent/users", FormerRights{0, 0, 0711}}, {"/opt/other", FormerRights{0, 0, 0700}}};
    second.rule = "bob ALL=(root) NOPASSWD: /x \"\"\n";
    const auto both = joined(first, second);
    CHECK(both.command == second.command);
    CHECK_FALSE(both.had_group);
    CHECK(both.new_accounts == std::vector<std::string>{"pi-agent-alice", "pi-agent-bob"});
    CHECK_FALSE(both.places.at("/var/lib/pi-agent/users").has_value());
    CHECK(both.places.at("/opt/other")->mode == 0700);
    CHECK(both.rule == first.rule);
    REQUIRE(both.policy.has_value());
    CHECK(are_same(both.policy->before, first.policy->before));
}

TEST_CASE("under another group, the first one's group stays")
{
    HostBefore second;
    second.group = "agents";
    second.had_group = true;
    const auto both = joined(one_of_everything(), second);
    CHECK(both.group == "agents");
    CHECK(both.had_group);
    CHECK(both.new_members.empty());
}

TEST_CASE("files are between two policies if each is of one of them")
{
    const std::string part = directory_of_parts(policy_path) + "/a.yaml";
    const PolicyChange change = {{{main_file, "old"}}, {{main_file, "new"}, {part, "new"}}};
    CHECK(is_between({{main_file, "old"}, {part, "new"}}, change));
    CHECK(is_between({{main_file, "new"}}, change));
    CHECK_FALSE(is_between({{main_file, "edited"}}, change));
    CHECK_FALSE(is_between({{main_file, "old"}, {part, "other"}}, change));
}

} // namespace unfinished_apply_test
