// Accounts and groups of the host, and which names are plain: common/host/identity.hpp
#include "common/host/account.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace pi_agent;

namespace account_test {

TEST_CASE("finds root by number and by name")
{
    const auto by_uid = find_account(Uid(0));
    REQUIRE(by_uid);
    CHECK(by_uid->name == "root");
    CHECK(by_uid->home.front() == '/');
    const auto by_name = find_account(std::string("root"));
    REQUIRE(by_name);
    CHECK(by_name->uid == Uid(0));
    CHECK(by_name->gid == Gid(0));
    CHECK(std::find(by_name->groups.begin(), by_name->groups.end(), gid_t{0}) != by_name->groups.end());
}

TEST_CASE("an absent account or group is nothing, not a failure")
{
    CHECK_FALSE(find_account(std::string("no-such-account-here")));
    CHECK_FALSE(find_account(Uid(4123456789U)));
    CHECK_FALSE(find_group("no-such-group-here"));
    CHECK_FALSE(group_name(Gid(4123456789U)));
}

TEST_CASE("finds groups both ways")
{
    const auto gid = find_group("root");
    REQUIRE(gid);
    CHECK(*gid == Gid(0));
    CHECK(group_name(Gid(0)) == "root");
}

TEST_CASE("a plain name is safe in sudoers, properties and paths")
{
    for (const auto *name : {"alice", "_apt", "pi-agent", "a.b", "x0", "a23456789012345678901234567890bc"})
        CHECK_MESSAGE(is_plain_name(name), name);
    for (const auto *name : {"",
                             "0",
                             "0day",
                             "0x0",
                             "-x",
                             ".",
                             "..",
                             "a..b",
                             ".a",
                             "Alice",
                             "a/b",
                             "%devs",
                             "a b",
                             "a\nb",
                             "a\\",
                             "a$",
                             "ALL",
                             "é",
                             "a234567890123456789012345678901bcd",
                             "a,b",
                             "a:b",
                             "#0",
                             "a!"}) {
        CHECK_FALSE_MESSAGE(is_plain_name(name), name);
    }
    CHECK_FALSE(is_plain_name(std::string("a\0b", 3)));
}

TEST_CASE("a name of a user database may hold what directory services give, and nothing that means something else elsewhere")
{
    for (const auto *name : {"alice", "Alice", "alice.smith@example.org", "CORP\\alice", "domain users", "o'brien", "ALL", "é", "_x", "a+b",
                             "0day", "4dm1n", "0xyz", "1e5", "a234567890123456789012345678901bcd"})
        CHECK_MESSAGE(is_account_name(name), name);
    for (const auto *name :
         {"",    "0",  "0x0", "0B1",   "0o17", "007", "1000", "-x",   ".",       "..",    "a/b",  "%devs",   "#0",   "!a",  "a,b",
          "a:b", "a*", "a=b", "$HOME", "a ",   " a",  "a\nb", "a\tb", "a\x1b[m", "a\x7f", "\xff", "a\u202e", "a\"b", "a(b)"})
        CHECK_FALSE_MESSAGE(is_account_name(name), name);
    CHECK_FALSE(is_account_name(std::string("a\0b", 3)));
    CHECK_FALSE(is_account_name(std::string(257, 'a')));
}

TEST_CASE("paths name a user by the number where the name is not plain, which is no plain name itself")
{
    Account user{"alice", Uid(4242), Gid(4242), "/home/a", {}};
    CHECK(short_name(user) == "alice");
    for (const auto *name : {"Alice", "CORP\\alice", "alice@example.org", "../x"}) {
        user.name = name;
        CHECK(short_name(user) == "@4242");
        CHECK_FALSE(is_plain_name(short_name(user)));
    }
    CHECK(short_name_of("root") == "root");
    CHECK(short_name_of("No.Such.User") == "No.Such.User");
    CHECK(user_of_short_name("@0") == "root");
    CHECK(user_of_short_name("alice") == "alice");
    CHECK(user_of_short_name("@x") == "@x");
}

TEST_CASE("groups are the same in any order")
{
    const Account one{"alice", Uid(1000), Gid(1000), "/home/alice", {1000, 4, 27}};
    Account other = one;
    other.groups = {27, 1000, 4, 4};
    CHECK(have_same_groups(one, other));
    other.groups = {27, 1000};
    CHECK_FALSE(have_same_groups(one, other));
}

} // namespace account_test
