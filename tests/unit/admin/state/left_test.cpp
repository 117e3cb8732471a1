// Who left a policy or a host: admin/state/state.hpp
#include "admin/state/state.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace pi_agent;
using namespace pi_agent::test;

namespace left_test {

namespace {

constexpr const char *text = "version: 1\nagent: {accounts: per-user}\nusers: {alice: {roots: [/srv/a]}, '%devs': {roots: [/srv/d]}}\n";

// alice is named, carol a member, dave neither; erin is a member whom the host does not know. "CORP\frank" has no plain name.
const std::map<std::string, uid_t> host = {{"alice", 4001}, {"carol", 4003}, {"dave", 4004}, {"CORP\\frank", 4006}};

std::optional<Account> account_of(const std::string &name)
{
    const auto found = host.find(name);
    if (found == host.end()) return std::nullopt;
    return Account{name, Uid(found->second), Gid(found->second), "/home/x", {found->second}};
}

std::optional<Account> account_with(Uid uid)
{
    for (const auto &[name, number] : host)
        if (Uid(number) == uid) return account_of(name);
    return std::nullopt;
}

UserDatabase database(const std::vector<std::string> &members)
{
    return {account_of, account_with, [](const std::string &group) { return group == "devs" ? std::optional(Gid(60001)) : std::nullopt; },
            [members](const std::string &) { return members; }};
}

std::string why(const std::string &name, const std::vector<std::string> &members = {"carol"})
{
    const auto policy = parse(text);
    return People(policy, database(members)).why_left(name);
}

} // namespace

TEST_CASE("who is named by the policy, or a member of a group that it names, has not left")
{
    CHECK(why("alice").empty());
    CHECK(why("carol").empty());
    CHECK(why("@4001").empty());
    CHECK(why("@4003").empty());
}

TEST_CASE("who is neither has left the policy, and whom the host does not know has left it")
{
    CHECK(why("dave") == "dave left the policy");
    CHECK(why("@4006") == "CORP\\x5cfrank left the policy");
    CHECK(why("gone") == "gone left this host");
    CHECK(has(why("@4999"), " left this host"));
}

TEST_CASE("a member of whom the host knows nothing but the name stays, and so does whoever may be that member")
{
    const std::vector<std::string> members = {"carol", "erin", "CORP\\erin"};
    CHECK(why("erin", members).empty());
    CHECK(why("@4999", members).empty()); // the number is all that its path has
    CHECK(why("gone", members) == "gone left this host");
}

TEST_CASE("whom a directory service may only not know just now is in doubt until the administrator says that they left")
{
    const auto policy = parse(text);
    auto with_service = database({"carol"});
    with_service.services = {"sss"};
    const People people(policy, with_service);
    for (const std::string name : {"gone", "@4999"}) {
        CHECK(has(people.why_left(name), " left this host"));
        CHECK_MESSAGE(has(people.doubt_about(name), "(sss in /etc/nsswitch.conf)"), people.doubt_about(name));
        CHECK(has(people.doubt_about(name), "prune --gone "));
        CHECK(People(policy, with_service, {name}).doubt_about(name).empty());
        CHECK(People(policy, database({"carol"})).doubt_about(name).empty()); // files alone: not found is not there
    }
    CHECK(people.doubt_about("dave").empty()); // known, so the policy alone decides
}

TEST_CASE("services are those of the line passwd that are not files of this host")
{
    using Services = std::vector<std::string>;
    CHECK(services_of("passwd", "passwd: files systemd\ngroup: files ldap\n").empty());
    CHECK(services_of("group", "passwd: files systemd\ngroup: files ldap\n") == Services{"ldap"});
    CHECK(services_of("passwd", "").empty());
    CHECK(services_of("passwd", "#passwd: files ldap\npasswd:\tfiles # ldap\n").empty());
    CHECK(services_of("passwd", " passwd : files [NOTFOUND = continue UNAVAIL=return] sss [!SUCCESS=return] ldap") ==
          Services{"sss", "ldap"});
    CHECK(services_of("passwd", "passwd: compat\n") == Services{"compat"}); // may ask NIS
}

TEST_CASE("where the host does not know whom the policy names, nobody can tell who left")
{
    for (const std::string users : {"ghost: {roots: [/srv/a]}", "'%ghosts': {roots: [/srv/a]}"}) {
        const auto policy = parse("version: 1\nagent: {accounts: per-user}\nusers: {" + users + "}\n");
        const Caught caught = failure_of([&] { return People(policy, database({})).why_left("dave"); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, "nobody can tell who left"), caught.text);
    }
}

} // namespace left_test
