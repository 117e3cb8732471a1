// The table of events: common/record/record_event.hpp
#include "common/record/record_event.hpp"

#include "common/base/build_settings.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace pi_agent;

namespace record_event_test {

namespace {

const RecordSubject somebody{"ID", "alice", Uid(1000), "pi-agent", "/srv/a", "systemd", "pi-agent-ID.service", "agent"};

std::map<std::string, std::string> fields_of(const RecordSubject &subject, const RecordEvent &event)
{
    std::map<std::string, std::string> known;
    for (const auto &field : record_fields(subject, event, "pi-agent-runner")) {
        CHECK_MESSAGE(known.count(field.name) == 0, field.name << " is there twice");
        known[field.name] = field.value;
    }
    return known;
}

const std::map<std::string, std::string> common = {
    {"SYSLOG_IDENTIFIER", "pi-agent-runner"},
    {"PI_AGENT_VERSION", build::version},
    {"PI_AGENT_SESSION", "ID"},
    {"PI_AGENT_USER", "alice"},
    {"PI_AGENT_UID", "1000"},
    {"PI_AGENT_ACCOUNT", "pi-agent"},
    {"PI_AGENT_PROJECT", "/srv/a"},
    {"SANDBOX_SELECT", "systemd"},
    {"PI_AGENT_UNIT", "pi-agent-ID.service"},
    {"PI_AGENT_PROGRAM", "agent"},
};

void check_fields(const RecordEvent &event, std::map<std::string, std::string> wanted)
{
    wanted.insert(common.begin(), common.end());
    CHECK(fields_of(somebody, event) == wanted);
}

} // namespace

TEST_CASE("each event has its id, its words and its fields")
{
    check_fields(ConnectionDeniedEvent{"2001:db8::1", 22, "no-rule", "no rule names it", "network.hosts", "p.yaml:3", 2},
                 {{"MESSAGE", "session ID: denied [2001:db8::1]:22 (2 times): no rule names it"},
                  {"MESSAGE_ID", "e13f445bcda001cb4f6ba8951f7ee7de"},
                  {"PRIORITY", "5"},
                  {"PI_AGENT_EVENT", "connection-denied"},
                  {"PI_AGENT_HOST", "2001:db8::1"},
                  {"PI_AGENT_PORT", "22"},
                  {"PI_AGENT_CODE", "no-rule"},
                  {"PI_AGENT_REASON", "no rule names it"},
                  {"PI_AGENT_KEY", "network.hosts"},
                  {"PI_AGENT_WHERE", "p.yaml:3"},
                  {"PI_AGENT_COUNT", "2"}});
    check_fields(StartedEvent{}, {{"MESSAGE", "session ID started: user alice, agent account pi-agent, project /srv/a"},
                                  {"MESSAGE_ID", "66c98c44df044d42bb1c1db95e628542"},
                                  {"PRIORITY", "6"},
                                  {"PI_AGENT_EVENT", "started"}});
    check_fields(StartedEvent{true}, {{"MESSAGE", "session ID started: user alice, agent account pi-agent, project /srv/a"},
                                      {"MESSAGE_ID", "66c98c44df044d42bb1c1db95e628542"},
                                      {"PRIORITY", "6"},
                                      {"PI_AGENT_EVENT", "started"},
                                      {"PI_AGENT_SIGNING", "off"}});
    check_fields(StartedEvent{false, "github.com:22 *.example.org"},
                 {{"MESSAGE", "session ID started: user alice, agent account pi-agent, project /srv/a"},
                  {"MESSAGE_ID", "66c98c44df044d42bb1c1db95e628542"},
                  {"PRIORITY", "6"},
                  {"PI_AGENT_EVENT", "started"},
                  {"PI_AGENT_ADDED_HOSTS", "github.com:22 *.example.org"}});
    check_fields(EndedEvent{AgentEnded{false, 3}, "", 1500, 4096, 700}, {{"MESSAGE", "session ID ended: exit code 3"},
                                                                         {"MESSAGE_ID", "1473189816fb46f78756d779503e642b"},
                                                                         {"PRIORITY", "6"},
                                                                         {"PI_AGENT_EVENT", "ended"},
                                                                         {"PI_AGENT_EXIT_CODE", "3"},
                                                                         {"PI_AGENT_DURATION_USEC", "1500"},
                                                                         {"PI_AGENT_MEMORY_PEAK", "4096"},
                                                                         {"PI_AGENT_CPU_USEC", "700"}});
    check_fields(DeniedEvent{ExitStatus::denied, "denied: no"}, {{"MESSAGE", "refused alice: denied: no"},
                                                                 {"MESSAGE_ID", "7bf4d9228dc9412783564f72533c539c"},
                                                                 {"PRIORITY", "4"},
                                                                 {"PI_AGENT_EVENT", "denied"},
                                                                 {"PI_AGENT_STATUS", "77"},
                                                                 {"PI_AGENT_CODE", "E77"},
                                                                 {"PI_AGENT_REASON", "denied: no"}});
    check_fields(DeniedEvent{ExitStatus::unavailable, "no podman", FailureKind::sandbox_method},
                 {{"MESSAGE", "no session for alice (a failure, not a denial): no podman"},
                  {"MESSAGE_ID", "7bf4d9228dc9412783564f72533c539c"},
                  {"PRIORITY", "4"},
                  {"PI_AGENT_EVENT", "denied"},
                  {"PI_AGENT_STATUS", "69"},
                  {"PI_AGENT_CODE", "E69-method"},
                  {"PI_AGENT_REASON", "no podman"}});
    check_fields(ProblemEvent{"bad"}, {{"MESSAGE", "session ID: bad"},
                                       {"MESSAGE_ID", "6b13904c28cc477ab38d0614f010c115"},
                                       {"PRIORITY", "3"},
                                       {"PI_AGENT_EVENT", "problem"},
                                       {"PI_AGENT_REASON", "bad"}});
}

TEST_CASE("a preflight passes, or fails with a reason")
{
    RecordSubject subject;
    subject.method = "bwrap";
    auto fields = fields_of(subject, PreflightEvent{""});
    CHECK(fields["MESSAGE_ID"] == "17fc8ec4217144418246ed895f08a192");
    CHECK(fields["MESSAGE"] + " " + fields["PRIORITY"] + " " + fields["PI_AGENT_RESULT"] ==
          "preflight of sandbox.method bwrap passed 6 passed");
    fields = fields_of(subject, PreflightEvent{"no bwrap"});
    CHECK(fields["MESSAGE"] == "preflight of sandbox.method bwrap failed: no bwrap");
    CHECK(fields["PRIORITY"] + " " + fields["PI_AGENT_RESULT"] + " " + fields["PI_AGENT_REASON"] == "3 failed no bwrap");
    CHECK(fields["SANDBOX_SELECT"] == "bwrap");
}

TEST_CASE("a preflight that went through a user's processes says whose word it is")
{
    RecordSubject subject;
    subject.method = "systemd";
    subject.user = "alice";
    subject.uid = Uid(1000);
    auto fields = fields_of(subject, PreflightEvent{""});
    CHECK(fields["MESSAGE"] == "preflight of sandbox.method systemd passed by the word of alice's processes");
    CHECK(fields["PI_AGENT_USER"] + " " + fields["PI_AGENT_UID"] == "alice 1000");
    fields = fields_of(subject, PreflightEvent{"no session"});
    CHECK(fields["MESSAGE"] == "preflight of sandbox.method systemd failed by the word of alice's processes: no session");
}

TEST_CASE("how a session ended is a code, a signal, or a reason alone")
{
    auto fields = fields_of(somebody, EndedEvent{AgentEnded{true, 9}, "asked", {}, {}, {}});
    CHECK(fields["MESSAGE"] == "session ID ended: signal 9, asked");
    CHECK(fields["PI_AGENT_EXIT_SIGNAL"] == "9");
    CHECK(fields.count("PI_AGENT_EXIT_CODE") == 0);
    fields = fields_of(somebody, EndedEvent{std::nullopt, "killed", {}, {}, {}});
    CHECK(fields["MESSAGE"] == "session ID ended: killed");
    CHECK(fields["PI_AGENT_REASON"] == "killed");
    CHECK(fields.count("PI_AGENT_EXIT_CODE") + fields.count("PI_AGENT_EXIT_SIGNAL") == 0);
}

TEST_CASE("a shell in the agent's place is named")
{
    RecordSubject subject = somebody;
    subject.program = "shell";
    auto fields = fields_of(subject, StartedEvent{});
    CHECK(fields["PI_AGENT_PROGRAM"] == "shell");
    CHECK(fields["MESSAGE"] == "session ID started: user alice, agent account pi-agent, project /srv/a, a shell in the agent's place");
}

TEST_CASE("what is not known is no field")
{
    const auto fields = fields_of({}, DeniedEvent{ExitStatus::denied, "denied: no"});
    CHECK(fields.at("MESSAGE") == "refused somebody: denied: no");
    for (const auto &field : common) {
        const std::string &name = field.first;
        CHECK_MESSAGE((fields.count(name) == 1) == (name == "SYSLOG_IDENTIFIER" || name == "PI_AGENT_VERSION"), name);
    }
}

TEST_CASE("no byte that somebody chose ends a line or reaches a terminal, and no value is long")
{
    RecordSubject subject = somebody;
    subject.user = subject.project = "x\nPRIORITY=0\n\x1b[2J\xff";
    const std::string harmless = "x\\x0aPRIORITY=0\\x0a\\x1b[2J\\xff";
    auto fields = fields_of(subject, StartedEvent{});
    CHECK(fields["PI_AGENT_USER"] == harmless);
    CHECK(fields["PI_AGENT_PROJECT"] == harmless);
    CHECK(fields["MESSAGE"] == "session ID started: user " + harmless + ", agent account pi-agent, project " + harmless);
    fields = fields_of(subject, DeniedEvent{ExitStatus::denied, std::string(100'000, '\n')});
    CHECK(encode_journal_entry(record_fields(subject, DeniedEvent{ExitStatus::denied, std::string(100'000, '\n')}, "pi")).size() < 100'000);
    for (const auto &field : fields) {
        const std::string &value = field.second;
        CHECK_MESSAGE(std::none_of(value.begin(), value.end(), [](char byte) { return byte == '\n' || byte == '\x1b'; }), field.first);
    }
}

} // namespace record_event_test
