// The record: where the runner's events go, how their file is kept, and what is recorded about one start.
#pragma once

#include "common/record/record_event.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/session/session_directory.hpp"

#include <exception>

namespace pi_agent {

// --- Where the runner's events go: the journal, or on a host without one a file that root owns. They hold no prompts and no values, and
// every foreign byte is escaped.

constexpr int journal_patience_milliseconds = 1000;

// Throws Failure(system_failure) when neither takes it. `identifier` is the program that reports the event.
void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier = "pi-agent-runner",
                  int patience_milliseconds = journal_patience_milliseconds);

// best_effort: a problem beside a session, in the words `text` and `more`. `id` is the session's, or names what else it is about.
void record_problem(std::string_view id, std::string_view text, std::string_view more = {}) noexcept;

// best_effort: runs `step`. Records an exception from it as such a problem, after `words`, and returns false.
template <typename Step>
bool attempt_recorded(std::string_view id, const Step &step, std::string_view words = {})
{
    try {
        step();
        return true;
    } catch (const std::exception &failure) {
        record_problem(id, words, failure.what());
        return false;
    }
}

// --- Files of events, one JSON line each; at a bound a file is moved to STEM.full-NUMBER, which replaces the earlier one.

// On a host without a journal: of all, and only root can read it.
constexpr const char *record_directory = "/var/log/pi-agent";
constexpr const char *record_file_path = "/var/log/pi-agent/record.jsonl";
constexpr const char *record_stem = "record";

// What is about one user besides, on every host: that user can read it, and root alone write. Connections that were denied are apart.
// In which a user's own process keeps checkpoints (common/undo). Throws if it belongs to somebody else.
void make_undo_directory(const Account &user);

constexpr const char *own_records_path = "/var/lib/pi-agent/records";
constexpr const char *denials_stem = "denials";
std::string own_record_directory(const Account &user);

// --- What is recorded about one start: that it was refused, or that a session started and, once, that it ended.

// For the runner. If the runner is killed before it records the end, record_end_of_killed() does.
class SessionRecord {
public:
    SessionRecord() = default;
    SessionRecord(const SessionRecord &) = delete;
    SessionRecord &operator=(const SessionRecord &) = delete;
    ~SessionRecord() = default;

    // Filled in as facts become known. An entry about a refused start lacks those that are not known yet.
    void concerns(std::optional<Uid> uid) { subject_.uid = uid; } // SUDO_UID alone says so
    void concerns(const Account &caller)
    {
        subject_.user = caller.name;
        subject_.uid = caller.uid;
    }
    void names(const std::string &session_id) { subject_.session = session_id; }
    void runs_in(SandboxMethod method);
    void runs(Program program) { subject_.program = to_string(program); }
    // Paths of any bytes; `repository` is empty where the session has no repository.
    void works_in(const std::string &directory, const std::string &repository)
    {
        subject_.directory = directory;
        subject_.repository = repository;
    }
    // Its git does not sign, though the user's settings or the repository's ask for it.
    void commits_are_unsigned() { commits_unsigned_ = true; }
    // Hosts that its user added, as the policy lets them.
    void adds(const std::vector<std::string> &hosts);
    // Why it ends, where somebody asked for that; recorded instead of how it ended.
    void because(const std::string &reason) { asked_ = reason; }

    // Call it right before the agent starts. Throws Failure when no record takes it: then the agent must not start.
    void started(const SessionDirectory &session, const Account &agent, const std::string &project, Program program);
    // What the sandbox has used until now. The launcher's report of the agent's end is a hostile peer's hint: usage taken because of it
    // counts only where the end has followed at once.
    void take_usage(const UnitUsage &usage);
    [[nodiscard]] bool knows_usage() const { return usage_.cpu_usec && Clock::now() < usage_counts_until_; }
    // What its gate tells while it runs. best_effort, and without waiting for a busy journal: it comes from what the agent does.
    void denied_connection(const ConnectionDeniedEvent &event) const noexcept;
    // How the session ended. Throws Failure when no record takes it.
    void ended(const AgentEnded &how) { end({how, asked_, {}, {}, {}}); }
    // Why there was no session, or why the one that started is over; records the same reason once. Throws as above.
    void failed(ExitStatus status, const std::string &reason, FailureKind kind = FailureKind::other);

private:
    void end(EndedEvent event);

    RecordSubject subject_;
    std::string asked_;
    std::string recorded_failure_;
    UnitUsage usage_;
    Deadline usage_counts_until_{};
    UniqueFd directory_; // of the session
    UniqueFd open_end_;  // locked as long as we must record `ended`
    bool started_ = false;
    bool commits_unsigned_ = false;
    std::string added_hosts_;
    std::uint64_t started_usec_ = 0;
};

// A session that has started and whose end is not recorded yet: who owns it, and for how long it has been running.
struct OpenRecord {
    RecordSubject subject;
    std::uint64_t running_usec{};
};
// None before the agent starts, and when the end is recorded.
std::optional<OpenRecord> read_open_record(FdRef session);

// Whether the end of a session is not recorded yet.
bool has_open_end(FdRef session);

// Records the end of a session whose runner is gone, unless it is recorded already. Waits for a runner that lives, because it knows more;
// false when that one does not record it by the deadline.
[[nodiscard]] bool record_end_of_killed(const AsRoot &root, const std::string &session_id, Deadline deadline);

} // namespace pi_agent
