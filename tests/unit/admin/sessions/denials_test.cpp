// Denied connections from the record: admin/sessions/sessions.hpp
#include "admin/sessions/sessions.hpp"

#include <doctest/doctest.h>
#include <map>
#include <sstream>

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

TEST_CASE("as YAML each host is there once, the most wanted first, with its port and quotes; what no name allows is a comment")
{
    const auto denied = [](const std::string &host, std::uint64_t port, const std::string &code, std::uint64_t count) {
        DeniedConnection denial;
        denial.time_usec = 1'800'000'000'000'000;
        denial.user = "alice";
        denial.host = host;
        denial.port = port;
        denial.code = code;
        denial.reason = "because of " + code;
        denial.count = count;
        return denial;
    };
    const auto text =
        to_yaml({denied("a.example", 443, "no-rule", 1), denied("b.example", 22, "no-rule", 2), denied("A.example", 443, "no-rule", 4),
                 denied("fd00::1", 8443, "no-name", 1), denied("c.example", 443, "encrypted-name", 1),
                 denied("d.example\\x22]: [", 443, "no-rule", 9), denied("", 0, "", 7), denied("10.0.0.0/8", 443, "no-rule", 8),
                 denied("*.e.example", 443, "no-rule", 8)}); // as a gate would say that a session has taken over
    CHECK(text.find("network:\n  hosts:\n    - \"a.example\" # 5 times, alice; last 20") != std::string::npos);
    const auto second = text.find("    - \"b.example:22\" # 2 times");
    CHECK((second != std::string::npos && second > text.find("a.example")));
    CHECK(text.find("    - \"[fd00::1]:8443\" # 1 times") != std::string::npos);
    CHECK(text.find("# c.example: because of encrypted-name (1 times, alice") != std::string::npos);
    std::istringstream lines(text); // what an agent chose is in no line of YAML but as a rule that the policy takes
    for (std::string line; std::getline(lines, line);)
        CHECK((line.starts_with("#") || line.find("d.example") == std::string::npos));
    CHECK(text.find("7 times") == std::string::npos);
    CHECK(text.find("# 10.0.0.0/8: because of no-rule (8 times, alice") != std::string::npos);
    CHECK(text.find("# *.e.example: because of no-rule (8 times, alice") != std::string::npos);
}

} // namespace denials_test
