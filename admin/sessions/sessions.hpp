// Sessions that live, and earlier ones: `pi-agentctl sessions`, `stop`, `history`, `shell`, `denials`; for others than root by a
// question.
#pragma once

#include "admin/host/host_things.hpp"

#include "runner/root/confined/session_end.hpp"

namespace pi_agent {

// --- pi-agentctl sessions and stop: which sessions there are, and ending them.

// As look_at_sessions (runner/root/own/questions.hpp); `user` is a name of the user database, or Failure(usage).
std::vector<SessionView> list_sessions(const AsRoot &root, const std::optional<std::string> &user);

// Which of these `id`, a whole one or its beginning, names. Throws NothingToDo if there is no such session, with `listing`, the command
// that lists them, and Failure(usage) for several.
std::string choose_session(const std::vector<std::string> &ids, const std::string &id, const char *listing);

// Root lists everybody's, or those of `user`. Others list their own: the runner answers (ask_own).
void run_sessions(const std::optional<std::string> &user, bool json, std::ostream &out);

// Which sessions to end: one, those of a user, or, with neither, all.
struct StopOrder {
    std::optional<std::string> id, user;
    std::optional<std::string> message; // the administrator's words for their users, and for the record
};
// Returns when they are gone. Others than root end their own. Throws NothingToDo if there is no session to end, Failure(system_failure) if
// one does not end.
void run_stop(const StopOrder &order, std::ostream &out);

// For people and terminals: throws Failure(usage) for a text that could be anything but a line of words.
void require_harmless_message(const std::string &message);

// --- pi-agentctl drain: no session starts on this host, and those that run go on, until `off` or the next boot.
struct DrainOrder {
    bool off = false;
    bool wait = false;                  // until no session runs
    std::optional<std::string> message; // for users who try to start one
};
// Throws Failure(limit) if somebody ends the drain while it waits.
void run_drain(const DrainOrder &order, std::ostream &out);

// What sessions and doctor say of it; "" while sessions may start.
std::string drain_note(const AsRoot &root);

// --- Ends the sessions of users whom the policy does not authorise any more; under the emergency stop, all of them.

using FindAccount = std::function<std::optional<Account>(Uid)>;

// Which of these sessions have to end, and why.
std::vector<EndOrder> sessions_to_end(const Policy &policy, const std::vector<LiveSession> &sessions, const FindAccount &find);

// Returns the sessions that do not end.
std::vector<std::string> end_unauthorised_sessions(const AsRoot &root, const Policy &policy, Changes &changes);

// Stops the scopes that killed starts left. The next start would stop them, but if nobody may start pi any more, there is no next start.
// What fails is a warning.
void stop_empty_scopes(const AsRoot &root, Changes &changes, std::ostream &warnings);

// Throws Failure(limit) while a session lives; `remedy` is its end.
void require_no_session(const AsRoot &root, const std::string &remedy);

// A session that does not end, as far as it is known. Empty are the unit (method bwrap) and the account if it has none of these.
struct LeftSession {
    std::string id, unit, account;
};
// What to look at it with, for a message.
std::string where_to_look(const std::vector<LeftSession> &left);

// Throws Failure(system_failure) that says where to look, if sessions are left; `problem` is its beginning.
void require_ended(const std::vector<std::string> &living, const std::string &problem);

// Where a session was begun: older versions recorded no working directory, only the project.
inline const std::string &place_of(const std::string &directory, const std::string &project)
{
    return directory.empty() ? project : directory;
}

// --- The record, read back (docs/reference/record.md): from the journal, and from the files that root writes.

struct LogEntry {
    std::uint64_t time_usec = 0; // since 1970
    std::map<std::string, std::string> fields_by_name = {};

    // Empty without one.
    [[nodiscard]] std::string field(const std::string &name) const;
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string &name) const { return to_number<std::uint64_t>(field(name)); }
    // root's own word: the journal says who sent an entry, and the files belong to root. A user's entry is only about that user, and
    // harmless at most.
    [[nodiscard]] bool is_roots() const { return field("_UID") == "0"; }
};

enum class RecordPart {
    starts,      // refused ones, sessions and their ends
    connections, // that were denied in sessions
};

// In the order of their times.
struct RecordRead {
    std::vector<LogEntry> entries;
    bool is_cut = false; // some are left out: of all the oldest, or the oldest of a user who wrote too many
};

// Whether this process may read the journal of the system: root, and members of some groups. read_record(), read_session_log() and
// recorded_sessions() throw Failure(denied) for everybody else. All bound the memory of this process.
bool can_read_record();

// Of starts: the events `denied`, `started`, `ended` and `preflight`. Of `denied` it also has what the wrapper said as its own user, of
// each user a bounded part. It leaves out every other entry that root did not write. `since` is in microseconds since 1970.
RecordRead read_record(std::optional<std::uint64_t> since, RecordPart part = RecordPart::starts);

// A bound behind the bounds: what they let pass fits several times. Mappings of the journal's files do not count.
void bound_memory_of_reader();

constexpr std::chrono::milliseconds follow_pause(500); // between two looks

// Of these, what is about the user of this process, from the files that root writes for them.
RecordRead read_own_record(const Account &user, std::optional<std::uint64_t> since, RecordPart part);

// The same for a command of a user's (require_own), with a note where it is cut.
std::vector<LogEntry> read_callers_record(const std::string &command, const std::optional<std::string> &user,
                                          std::optional<std::uint64_t> since, RecordPart part, std::ostream &notes);

// Everything about one session: its record, what its units wrote, and what systemd wrote about them.
RecordRead read_session_log(const std::string &id);

// The ids of all sessions of which root has recorded a start or a refusal.
std::vector<std::string> recorded_sessions();

// --- pi-agentctl history, without and with a session: what the record has of sessions and refusals, and everything about one session.

// One start: a session, or a refusal. Values are harmless, as in the record, except `user`: the name as the host has it.
struct PastStart {
    std::string id; // empty for a refusal that came before there was one
    std::string user, account, project, directory, repository, method, program;
    std::optional<std::uint64_t> started_usec, ended_usec; // since 1970; of a refusal `ended` alone
    std::optional<std::uint64_t> duration_usec, memory_peak, cpu_usec;
    std::optional<std::uint64_t> exit_code, exit_signal;
    std::optional<std::uint64_t> refused; // no session started: the exit status of pi
    std::string code;                     // of the refusal, "E77-root"; empty in records of versions without codes
    bool is_probe = false;                // of pi-agentctl's, which tried the sandbox (apply, doctor)
    bool said_by_root = true;             // false: a refusal of the wrapper's, in its user's name
    bool is_running = false;              // known to root alone
    std::string reason;

    [[nodiscard]] std::uint64_t first_usec() const { return started_usec.value_or(ended_usec.value_or(0)); }
    // By the policy, or a rule of the runner; anything else that kept it from starting is a failure.
    [[nodiscard]] bool is_denied() const { return refused == static_cast<std::uint64_t>(ExitStatus::denied); }
    // Refused, ended with an exit status other than 0, or never seen to end.
    [[nodiscard]] bool has_failed() const;
};

struct HistoryQuery {
    std::optional<std::string> user;
    std::optional<std::string> project; // begun in it, or in what is in it
    std::optional<std::uint64_t> since; // what was recorded then or later is looked at
    std::optional<std::uint64_t> until; // what began later is left out; what began before and ended later has its end
    bool failed = false;
    bool probes = false; // those of pi-agentctl's too
};

// Joins entries to starts, oldest first, and leaves out what the query does not ask for (`since` is the reader's business).
std::vector<PastStart> to_history(const std::vector<LogEntry> &entries, const HistoryQuery &query,
                                  const std::function<bool(const std::string &id)> &is_live);

// Says so where the look kept less than the record has.
void tell_if_cut(const RecordRead &record, std::ostream &notes);

// Both throw NothingToDo if nothing is recorded. A user who cannot read the journal sees their own history, and has no logs:
// Failure(denied).
void run_history(const HistoryQuery &query, bool json, std::ostream &out, std::ostream &notes);
// With `follow` it goes on until the session has ended.
void run_logs(const std::string &id, bool follow, std::ostream &out, std::ostream &notes);

// --- pi-agentctl shell: a shell in the same sandbox as the agent, for people who want to see what the agent sees.

// Becomes the wrapper beside this program, which starts the shell as it starts the agent: the policy, the sudo rule and the sandbox are the
// same, and so is the exit status. `arguments` are bash's. Throws SystemFailure, or Failure(usage) for root, who cannot be a user of pi.
[[noreturn]] void become_shell(const std::vector<std::string> &arguments);

// pi-agentctl export: prints a transcript out of the agent's home, or lists them. Only the agent's account reads there, so a program in the
// session does, with no more rights than the agent. Throws as become_shell.
[[noreturn]] void become_export(const std::optional<std::string> &session);

// pi-agentctl denials: which connections of sessions the policy's network denied, and what would change that.

// One event of the record. Values are harmless, as there; the user's name is as the host has it.
struct DeniedConnection {
    std::uint64_t time_usec = 0;
    std::string session, user, project;
    std::string host; // empty for more of a session than the record takes one by one
    std::uint64_t port = 0;
    std::string code, reason;
    std::string key;   // of the policy, that would change it
    std::string where; // of the rule that almost fits
    std::uint64_t count = 1;
};

struct DenialQuery {
    std::optional<std::string> session; // a whole id, or its beginning
    std::optional<std::string> user;
    std::optional<std::uint64_t> since;
    bool follow = false; // goes on until the reader is gone
    bool probes = false; // those of pi-agentctl's own sessions too
};

// In the order of their times.
std::vector<DeniedConnection> to_denials(const std::vector<LogEntry> &entries, const DenialQuery &query);

// A user who cannot read the journal sees their own. Throws NothingToDo if the record has no such event, unless it follows. As JSON, what
// it follows comes one object a line. `summary`: as YAML.
void run_denials(const DenialQuery &query, bool json, bool summary, std::ostream &out, std::ostream &notes);

// What would name the denied hosts in a policy, with how often and by whose sessions; as comments what no name would allow. Pure.
std::string to_yaml(const std::vector<DeniedConnection> &denials);

// How others than root see and end their own sessions: the runner is asked, by the same sudo rule by which pi starts it.

// Throws Failure where nobody can ask, and Failure(denied) unless this user may: the policy authorises them, and `user`, whom the command
// line names, is themselves. `why` goes on after the command's name: "looks at the sessions of other users". Returns this user.
Account require_own(const std::string &command, const std::optional<std::string> &user, const std::string &why);

// Root's answer. Throws the Failure that root answered, or Failure with the reason why no answer came.
OwnAnswer ask_own(const OwnQuestion &question);

// --- Numbers for a monitoring system: `pi-agentctl metrics`.

// The policy's files, and what apply made of them.
struct PolicyFacts {
    std::size_t errors = 0; // of its text; this host may not fit it even so
    bool is_enabled = false;
    bool is_applied = false;                   // apply has seen these files last
    std::optional<std::uint64_t> changed_usec; // since 1970: the newest of them
    std::optional<std::uint64_t> applied_usec; // when apply succeeded last
};

struct MetricsInput {
    std::uint64_t now_usec = 0;    // since 1970
    std::uint64_t window_usec = 0; // how far back "recent" goes
    std::vector<SessionView> sessions;
    std::vector<PastStart> starts; // that began or ended in the window; of other times they count for nothing
    PolicyFacts policy;
};

// In the text form of Prometheus, as OpenMetrics has it too: families of gauges, each with HELP and TYPE, and "# EOF". No value names a
// path, a session or an argument. Pure.
std::string to_metrics(const MetricsInput &input);

struct MetricsOptions {
    std::optional<std::string> output; // an absolute path that ends in ".prom"; without it standard output
    std::string since = "24h";         // as parse_time (admin/text/terminal.hpp)
};

// The file is replaced in one step, so that nobody reads half of it. Throws Failure(usage) for another path, and Failure(configuration) if
// others than root can change its directory.
void run_metrics(const MetricsOptions &options, std::ostream &out, std::ostream &notes);

} // namespace pi_agent
