// Reads the record, and shows it: `pi-agentctl history`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- Reading the record back (docs/record.md): from the journal, and from the file that stands in for it.

struct LogEntry {
    std::uint64_t time_usec; // since 1970
    std::map<std::string, std::string> fields;

    // Empty where there is none.
    [[nodiscard]] std::string field(const std::string &name) const;
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string &name) const;
    // root's own word: the journal says who sent an entry, and the file is root's. A user's is about that user and harmless at most.
    [[nodiscard]] bool is_roots() const;
};

// The events `denied`, `started`, `ended` and `preflight`, in the order of their times; of `denied` also what the wrapper said as its own
// user, every other entry that is not root's left out. `since` is in microseconds since 1970. Throws Failure(denied) when this process may
// not read the journal of the system.
std::vector<LogEntry> read_record(std::optional<std::uint64_t> since);

// Everything about one session: its record, what its units wrote, and what systemd wrote about them.
std::vector<LogEntry> read_session_log(const std::string &id);

// The ids of all sessions of which there is a record.
std::vector<std::string> recorded_sessions();

// --- pi-agentctl history and logs: what the record has of sessions and refusals, and everything about one session.

// One start: a session, or a refusal. Values are harmless, as in the record.
struct PastStart {
    std::string id; // empty for a refusal that came before there was one
    std::string user, account, project, directory, repository, method, program;
    std::optional<std::uint64_t> started_usec, ended_usec; // since 1970; of a refusal `ended` alone
    std::optional<std::uint64_t> duration_usec, memory_peak, cpu_usec;
    std::optional<std::uint64_t> exit_code, exit_signal;
    std::optional<std::uint64_t> refused; // no session came about: the exit status of pi
    bool is_probe = false;                // of pi-agentctl's, which tried the sandbox (apply, doctor)
    bool said_by_root = true;             // false: a refusal of the wrapper's, in its user's name
    bool is_running = false;              // known to root alone
    std::string reason;

    [[nodiscard]] std::uint64_t first_usec() const;
    // By the policy, or a rule of the runner; anything else that kept it from starting is a failure.
    [[nodiscard]] bool is_denied() const;
    // Refused, ended otherwise than with exit code 0, or never seen to end.
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

// The commands. Both throw Nothing where there is none, and Failure(denied) for those who cannot read the journal.
void run_history(const HistoryQuery &query, bool json, std::ostream &out, std::ostream &notes);
void run_logs(const std::string &id, std::ostream &out);

} // namespace pi_agent
