// Denied connections from the record: admin/sessions/sessions.hpp
#include "admin/sessions/sessions.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace pi_agent;

namespace denials_test {

namespace {

LogEntry entry(std::uint64_t time, const std::string &session, const std::string &user, const std::string &host)
{
    return {time,
            {{"PI_AGENT_EVENT", "connection-denied"},
             {"PI_AGENT_SESSION", session},
             {"PI_AGENT_USER", user},
             {"PI_AGENT_HOST", host},
             {"PI_AGENT_PORT", "443"},
             {"PI_AGENT_CODE", "no-rule"},
             {"PI_AGENT_COUNT", "3"},
             {"_UID", "0"}}};
}

const std::vector<LogEntry> entries = {entry(1, "aa01", "alice", "a.example"), entry(2, "bb01", "bob", "b.example"),
                                       entry(3, "aa02", "alice", "c.example")};

} // namespace

TEST_CASE("each event is told with its place, its reason and its count")
{
    const auto denials = to_denials(entries, {});
    REQUIRE(denials.size() == 3);
    CHECK(denials[0].host == "a.example");
    CHECK(denials[0].port == 443);
    CHECK(denials[0].code == "no-rule");
    CHECK(denials[0].count == 3);
    CHECK(denials[2].time_usec == 3);
}

TEST_CASE("a session or a user can be asked for")
{
    DenialQuery query;
    query.session = "aa01";
    CHECK(to_denials(entries, query).size() == 1);
    query.session = "aa";
    CHECK(to_denials(entries, query).size() == 2);
    query.session.reset();
    query.user = "bob";
    REQUIRE(to_denials(entries, query).size() == 1);
    CHECK(to_denials(entries, query)[0].host == "b.example");
}

TEST_CASE("a user is told, and asked for, as the host has the name")
{
    DenialQuery query;
    query.user = "CORP\\dana";
    const auto denials = to_denials({entry(1, "aa01", "CORP\\x5cdana", "a.example")}, query); // as the record has it
    REQUIRE(denials.size() == 1);
    CHECK(denials[0].user == "CORP\\dana");
}

TEST_CASE("an event without a count stands for one connection, and one without a host for more of them")
{
    const auto denials = to_denials({{5, {{"PI_AGENT_SESSION", "x"}}}}, {});
    REQUIRE(denials.size() == 1);
    CHECK(denials[0].count == 1);
    CHECK(denials[0].host.empty());
}

} // namespace denials_test
