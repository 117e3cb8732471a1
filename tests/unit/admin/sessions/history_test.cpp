// Joining the record to starts, and choosing a session: admin/sessions/sessions.hpp
#include "admin/sessions/sessions.hpp"

#include "admin/text/terminal.hpp"
#include "runner/root/session/session_directory.hpp"
#include "support/fake_journal.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace history_test {

namespace {

using Fields = std::map<std::string, std::string>;

LogEntry entry(std::uint64_t time, const std::string &event, const std::string &session, Fields more = {})
{
    more.insert({{"PI_AGENT_EVENT", event}, {"PI_AGENT_SESSION", session}, {"PI_AGENT_USER", "alice"}, {"PI_AGENT_PROJECT", "/srv/app"}});
    more.insert({"_UID", "0"});
    return {time, more};
}

bool nobody_lives(const std::string & /*id*/)
{
    return false;
}

std::vector<std::string> ids_of(const std::vector<PastStart> &starts)
{
    std::vector<std::string> ids;
    for (const auto &start : starts)
        ids.push_back(start.id);
    return ids;
}

const std::vector<LogEntry> entries = {
    entry(1000, "started", "A"),
    entry(2000, "started", "B", {{"PI_AGENT_USER", "bob"}, {"PI_AGENT_PROJECT", "/srv/apple"}}),
    entry(3000, "ended", "A", {{"PI_AGENT_EXIT_CODE", "0"}, {"PI_AGENT_DURATION_USEC", "1990"}, {"PI_AGENT_CPU_USEC", "7"}}),
    entry(4000, "denied", "",
          {{"PI_AGENT_STATUS", "77"}, {"PI_AGENT_REASON", "no\x1b"}, {"_UID", "4000000000"}}), // who calls themselves alice
    entry(5000, "ended", "C", {{"PI_AGENT_EXIT_SIGNAL", "9"}, {"PI_AGENT_DURATION_USEC", "4500"}}),
    entry(6000, "started", "D"),
};

void record_denial_of(const std::string &user, uid_t number, const std::string &reason)
{
    record_event(RecordSubject{"", user, Uid(number), "", "", "systemd", "", "agent"}, DeniedEvent{ExitStatus::denied, reason});
}

} // namespace

TEST_CASE("what is recorded of one session is one start, in the order in which they began")
{
    const auto starts = to_history(entries, {}, [](const std::string &id) { return id == "D"; });
    CHECK(ids_of(starts) == std::vector<std::string>{"C", "A", "B", "", "D"});
    const auto &session = starts[1];
    CHECK(session.started_usec == 1000);
    CHECK(session.ended_usec == 3000);
    CHECK(session.exit_code == 0);
    CHECK(session.cpu_usec == 7);
    CHECK_FALSE(session.has_failed());
    CHECK(starts[0].started_usec == 500); // its beginning came before what was read
    CHECK(starts[0].has_failed());
    CHECK(starts[2].has_failed()); // nobody lives who could record its end
    CHECK(starts[4].is_running);
    CHECK_FALSE(starts[4].has_failed());
}

TEST_CASE("of two ends the first is the session's: the second is of who did not hear of it")
{
    std::vector<LogEntry> twice = entries;
    twice.push_back(entry(3500, "ended", "A", {{"PI_AGENT_REASON", "its runner did not record how"}, {"PI_AGENT_DURATION_USEC", "2490"}}));
    const auto starts = to_history(twice, {}, nobody_lives);
    CHECK(starts[1].exit_code == 0);
    CHECK(starts[1].ended_usec == 3000);
    CHECK_FALSE(starts[1].has_failed());
}

TEST_CASE("a refusal in its user's name is told apart from root's, and made harmless")
{
    const auto starts = to_history(entries, {}, nobody_lives);
    CHECK(starts[3].refused == 77);
    CHECK_FALSE(starts[3].said_by_root);
    CHECK(starts[3].user == "uid 4000000000");
    CHECK(starts[3].reason == "no\\x1b");
}

TEST_CASE("the user is the one of the host, and the rest is as it is recorded")
{
    const std::vector<LogEntry> recorded = {
        entry(1000, "started", "A", {{"PI_AGENT_USER", "CORP\\x5cdana"}, {"PI_AGENT_PROJECT", "/srv/a\\x5cb"}})};
    HistoryQuery query;
    query.user = "CORP\\dana";
    const auto starts = to_history(recorded, query, nobody_lives);
    REQUIRE(starts.size() == 1);
    CHECK(starts[0].user == "CORP\\dana");
    CHECK(starts[0].project == "/srv/a\\x5cb");
}

TEST_CASE("only what is asked for: of a user, in a project by whole names, failed")
{
    HistoryQuery query;
    query.user = "bob";
    CHECK(ids_of(to_history(entries, query, nobody_lives)) == std::vector<std::string>{"B"});
    query.user = "alice";
    query.project = "/srv/app";
    CHECK(ids_of(to_history(entries, query, nobody_lives)) == std::vector<std::string>{"C", "A", "D"});
    query.failed = true;
    CHECK(ids_of(to_history(entries, query, nobody_lives)) == std::vector<std::string>{"C", "D"});
    query.user = "uid 4000000000"; // who sent it, not whom it names
    CHECK(ids_of(to_history(entries, query, nobody_lives)) == std::vector<std::string>{""});
}

TEST_CASE("until a time: what began later is left out, and what began before has its end all the same")
{
    HistoryQuery query;
    query.until = 2000;
    const auto starts = to_history(entries, query, nobody_lives);
    CHECK(ids_of(starts) == std::vector<std::string>{"C", "A", "B"});
    CHECK(starts[1].ended_usec == 3000);
    query.failed = true;
    CHECK(ids_of(to_history(entries, query, nobody_lives)) == std::vector<std::string>{"C", "B"});
}

TEST_CASE("a session is named by as much of its id as no other begins with")
{
    const std::vector<std::string> ids = {"0aa", "0ab", "1cc"};
    CHECK(choose_session(ids, "1", "list") == "1cc");
    CHECK(choose_session(ids, "0ab", "list") == "0ab");
    CHECK_THROWS_AS(static_cast<void>(choose_session(ids, "0", "list")), Failure);
    CHECK_THROWS_AS(static_cast<void>(choose_session(ids, "2", "list")), NothingToDo);
    CHECK_THROWS_AS(static_cast<void>(choose_session(ids, "", "list")), Failure); // a mistake of who types, where an id may be gone
    CHECK_THROWS_AS(static_cast<void>(choose_session({}, "1", "list")), NothingToDo);
}

TEST_CASE("a try of the sandbox is no user's start, and a user's own canary is one")
{
    const Fields canary = {{"PI_AGENT_PROGRAM", "canary"}};
    const Fields canary_ended = {{"PI_AGENT_PROGRAM", "canary"}, {"PI_AGENT_EXIT_CODE", "0"}};
    const std::vector<LogEntry> tried = {
        entry(1000, "started", "A", canary), // alice's own
        entry(2000, "ended", "A", canary_ended),
        entry(5000, "started", "B", canary),
        entry(6000, "ended", "B", canary_ended),
        entry(6500, "preflight", "", {{"PI_AGENT_DURATION_USEC", "2000"}}),
        entry(7000, "denied", "", {{"PI_AGENT_STATUS", "69"}}), // which failed before it was known what it is
        entry(7100, "denied", "", {{"PI_AGENT_STATUS", "77"}, {"PI_AGENT_PROGRAM", "agent"}}),
        entry(7500, "preflight", "", {{"PI_AGENT_DURATION_USEC", "700"}}),
        entry(8000, "preflight", "", {{"PI_AGENT_DURATION_USEC", "8000"}, {"_UID", "1000"}}), // a user says so
    };
    const auto starts = to_history(tried, {}, nobody_lives);
    CHECK(ids_of(starts) == std::vector<std::string>{"A", ""});
    CHECK(starts[1].is_denied());
    HistoryQuery query;
    query.probes = true;
    const auto all = to_history(tried, query, nobody_lives);
    REQUIRE(all.size() == 4);
    CHECK(all[1].is_probe);
    CHECK(all[2].is_probe);
    CHECK_FALSE(all[2].is_denied());
    CHECK(all[2].has_failed());
}

TEST_CASE("a project is where a session was begun, not what it showed")
{
    const std::vector<LogEntry> begun = {
        entry(1000, "started", "A", {{"PI_AGENT_DIRECTORY", "/srv/app/one/src"}}),
        entry(2000, "started", "B", {{"PI_AGENT_DIRECTORY", "/srv/app/other"}}), entry(3000, "started", "C"), // of an older version
    };
    HistoryQuery query;
    query.project = "/srv/app/one";
    CHECK(ids_of(to_history(begun, query, nobody_lives)) == std::vector<std::string>{"A"});
    query.project = "/srv/app";
    CHECK(ids_of(to_history(begun, query, nobody_lives)) == std::vector<std::string>{"A", "B", "C"});
}

TEST_CASE("a user's record is what has their number and their name, and goes no further back than asked" * doctest::skip(not_root()))
{
    const auto said = in_private_logs([] {
        std::filesystem::create_directory(std::filesystem::path(own_records_path).parent_path());
        const Account alice{"alice", Uid(1000), Gid(1000), "/home/alice", {1000}};
        record_denial_of("alice", 1000, "first");
        record_denial_of("bob", 1001, "bob's");
        record_denial_of("former", 1000, "of another who had her number");
        record_denial_of("alice", 1000, "second");
        const auto record = read_own_record(alice, {}, RecordPart::starts);
        std::string text;
        for (const auto &entry : record.entries)
            text += entry.field("PI_AGENT_REASON") + ", ";
        const auto later = read_own_record(alice, record.entries.empty() ? 0 : record.entries.back().time_usec + 1, RecordPart::starts);
        text += (record.is_cut ? "cut" : "whole") + std::string(", later ") + std::to_string(later.entries.size());
        const std::string own = own_record_directory(alice);
        std::filesystem::copy_file(own + "/record.jsonl", own + "/record.full-7"); // what was there before is read, too
        const auto doubled = read_own_record(alice, {}, RecordPart::starts);
        text += ", full " + std::to_string(doubled.entries.size()) + (doubled.is_cut ? " cut" : " whole");
        record_denial_of("alice", 10001, "of another who was called alice");
        text += ", then " + std::to_string(read_own_record(alice, {}, RecordPart::starts).entries.size());
        return text + ", denials " + std::to_string(read_own_record(alice, {}, RecordPart::connections).entries.size());
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == "first, second, whole, later 0, full 4 cut, then 0, denials 0");
}

} // namespace history_test
