// Watches a session and its gate, and ends it: for the runner, for the administrator, and for whoever finds the remains of one.
#pragma once

#include "runner/root/errand/errand.hpp"
#include "runner/root/method/sandbox.hpp"

namespace pi_agent {

// --- Watches a session, ends it, and removes what it left: processes, mounts, directories, and files that accounts other than root own.

// A session from its agent's start to its removal: the launcher, the gate (GateWatch), the runner's loop, and what is left.
class Launcher {
public:
    explicit Launcher(FdRef control) noexcept : control_(control) {} // borrowed. The agent may stop pi-agent-exec, or take it over
    // For poll(2); none once it has closed, or broken the protocol.
    [[nodiscard]] FdRef fd() const noexcept { return is_open_ ? control_ : FdRef(-1); }
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }

    // What has come, if anything. Never waits.
    std::optional<ExecMessage> receive();
    // Hears what came before all was over. Whoever got hold of the launcher's socket may go on sending.
    void hear_last_words(const std::function<void(const ExecMessage &)> &hear);
    // Throws Failure when it does not read.
    void send(const WrapperMessage &message);

    // --- A signal that asks for the end, until the launcher says that it has passed it on.

    void expect_answer(const WrapperMessage &message);
    // False where none was expected.
    bool take_answer() noexcept;
    [[nodiscard]] Deadline answer_due() const noexcept { return due_; }
    // The signal whose answer is late, once.
    std::optional<int> take_unanswered();

private:
    FdRef control_;
    bool is_open_ = true;
    std::optional<int> unanswered_;
    Deadline due_ = Deadline::max();
};

// --- What the session's gate says while the agent runs. It reads what the agent sends, so it may be the agent by now: what it says is
// bounded, and changes nothing but the record, a file of the session, and a notice.
class GateWatch {
public:
    // Borrows channel, what it says (a pipe of packets) and record. `file`: the session's file of denials, open for writing. `places`: of
    // the policy, which denials may name. `kill` ends the gate.
    GateWatch(std::string session, FdRef channel, FdRef said, const SessionRecord &record, UniqueFd file, std::set<std::string> places,
              std::function<void()> kill)
        : session_(std::move(session)), channel_(channel), said_(said), record_(record), file_(std::move(file)), places_(std::move(places)),
          kill_(std::move(kill))
    {
    }
    GateWatch(const GateWatch &) = delete;
    GateWatch &operator=(const GateWatch &) = delete;
    ~GateWatch() = default;

    // To poll; of no file once the gate is gone.
    [[nodiscard]] FdRef fd() const { return is_there_ ? said_ : FdRef(-1); }
    // Reads one message. Returns what the user should know when the gate has gone, or goes on after a silence, and "" otherwise. Without a
    // gate every connection is refused: nothing else leads out of the session's network. One that breaks the protocol is killed: it has the
    // listeners, and would pass on what it likes.
    [[nodiscard]] std::string hear();
    // It serves, so from now on it has to say that it is alive.
    void expect_life() { last_heard_ = Clock::now(); }
    // To poll until then for a message, and to look at its silence if none came: what the user should know of it, or "".
    [[nodiscard]] Deadline due() const;
    [[nodiscard]] std::string look();
    // Reads what the gate still says when it is told that the session is over, for a moment; then what was denied in all, for the user: one
    // line, or "". Once.
    std::string finish();

private:
    void receive();
    bool says_too_much();
    void take(GateDenial denial);
    void count(const GateDenial &denial);
    bool may_record();
    void write_down(const std::string &line);

    std::string session_;
    FdRef channel_, said_;
    const SessionRecord &record_;
    UniqueFd file_;
    std::set<std::string> places_;
    std::function<void()> kill_;
    bool is_there_ = true;
    std::size_t heard_ = 0; // packets, since:
    Deadline counted_since_{};
    std::optional<Deadline> last_heard_;
    bool is_silent_ = false;
    bool is_full_ = false, is_full_told_ = false;
    std::size_t silences_told_ = 0;
    DeniedPlaces denied_;
    std::size_t written_ = 0; // bytes of the file
    std::size_t recorded_ = 0;
    std::size_t tokens_ = 0;
    Deadline filled_{};
    std::uint64_t unrecorded_ = 0;
};

// --- From the sandbox's start to its end: hands the launch record over, passes signals on, ends the sandbox when the wrapper is gone.
struct Session {
    FdRef wrapper; // the user's wrapper: watched, never received from
    ToWrapper &to_wrapper;
    Receiver &receiver; // what the wrapper says
    FdRef control;      // pi-agent-exec
    FdRef termination;  // from watch_termination
    FdRef job;          // readable when the job of the cluster has ended inside of which it runs; of no file without one
    // Sends the launch record, with the agent's end of the terminal where it has one, to pi-agent-exec.
    std::function<void(FdRef terminal)> hand_record_over;
    std::vector<WrapperMessage> early; // what the wrapper said before
    // Called when the launcher runs, before anything of the agent's is sent in; a Failure from it ends the sandbox.
    std::function<void()> require_enforced;
    // pi-agent-exec has reported the agent's end, and waits for an answer: the sandbox still exists, with what the kernel counted in it.
    std::function<void()> agent_has_ended;
    // The answer was sent: the sandbox now ends by itself, and the runner waits for it.
    std::function<void()> while_it_ends;
    GateWatch *gate = nullptr; // of a session that has one
};

constexpr int sandbox_stop_seconds = 15; // a unit's own stop takes at most 2 s per stage

// Returns when all of it has ended, in every case. Throws Failure when the agent was never started. `terminal` is the agent's end of the
// session's pty, if it has one.
AgentEnded supervise(Sandbox &sandbox, const Session &session, UniqueFd terminal);

// --- Sessions that the administrator ends: the reason is put into the session's directory, and its runner gets a signal to end it.
struct EndOrder {
    std::string session;
    std::string reason; // for the user and the record
};

// Ends sessions and returns when no process of them runs and nothing is left of them. Their runners ask the agents to end, and kill them
// two seconds later. A runner that does not get to it is killed, and its session ends with it (design rule 9). What systemd and the cleanup
// have not done a moment later is done here, the record too. Takes less than 15 seconds (runner/wire/answer.hpp). Returns the sessions that
// do not end even so.
std::vector<std::string> end_sessions(const AsRoot &root, const std::vector<EndOrder> &orders);

// --- One session's end in its runner: it is recorded, and what the session leaves is removed, at its end and after a failure.

// Removes what the session left, whatever happened; a cleanup unit has usually done it already. Borrows everything except `tell`.
class Ending {
public:
    using Tell = std::function<void(const std::string &text)>;
    Ending(const AsRoot &root, Sandbox &sandbox, std::string id, const SessionDirectory &session, SessionRecord &record, Tell tell)
        : root_(root), sandbox_(sandbox), id_(std::move(id)), session_(session), record_(record), tell_(std::move(tell))
    {
    }
    Ending(const Ending &) = delete;
    Ending &operator=(const Ending &) = delete;
    // From here to sandbox_has_ended() nothing is taken from under the agent. If nobody can tell whether the agent has ended, it ends with
    // this process, and another process cleans up after that.
    void sandbox_may_live() noexcept { sandbox_may_live_ = true; }
    void sandbox_has_ended() noexcept { sandbox_may_live_ = false; }
    // Returns or throws what `run` does. By then its end is recorded. That comes before what the session left is removed: whoever removes
    // it must not find an end that is still unrecorded. Where no record takes that entry, the user is told so.
    AgentEnded run_recorded(const std::function<AgentEnded()> &run);
    // Ends the sandbox after a problem. Where the sandbox had ended by itself before, one may have caused the other: throws Failure with
    // both, unless the problem was a signal.
    void end_after(const std::exception_ptr &problem);
    [[nodiscard]] bool was_asked() const noexcept { return explained_; }
    ~Ending();

private:
    // Tells the user, and the record, why the session ends, where somebody asked for it. Does so once, at the latest when this object ends.
    void explain() noexcept;

    const AsRoot &root_;
    Sandbox &sandbox_;
    std::string id_;
    const SessionDirectory &session_;
    SessionRecord &record_;
    Tell tell_;
    bool explained_ = false;
    bool sandbox_may_live_ = false;
};

// --- What root's processes of a session give up once it is prepared: capabilities, privileges by exec, system calls. After that they read
// for hours what user and agent send, so a hole in one of them should be worth less.

// For good, and for everything that this process forks. Throws Failure: nothing may go on unless all of it was given up.
void confine_root(const AsRoot &root);

// --- Removes what a session left where its runner could not do it.

// Sessions whose runner and sandbox are both gone: after a crash of the host's systemd, or a cleanup that failed.
void sweep(const AsRoot &root, Sandbox &sandbox);

// A unit of the session's own runs this after the session's unit has ended, in case no runner is left: removes its mounts and directories.
// Idempotent. Kills what is left of the unit's processes, and throws Failure when some stay.
void clean_up_after_unit(const AsRoot &root, const std::string &session_id);

// Does the work of `pi-agent-cleanup --when-runner-ends` (runner/root/method/sandbox_bwrap.cpp): waits at its standard input, and removes
// the session when the runner ends without a word.
void keep_session(const AsRoot &root, const std::string &session_id);

// Removes everything that a session left, on disk too. What cannot be removed in this time is recorded. The session's directory then stays,
// with its link to those files, for whoever else removes the session and for the next sweep. `leave` can keep it in any case.
void remove_session_with_scratch(const AsRoot &root, const std::string &id, int patience_seconds, Leave leave = Leave::nothing);

// --- The placeholders that a session made in its user's project.

// Removes them as the session's user. `session` is the directory of the session `id`, borrowed. Failures are recorded
// (runner/root/session/session_directory.hpp): what is left then has no effect, and a later session in the repository removes it.
class PlaceholderRemoval {
public:
    PlaceholderRemoval(const AsRoot &root, std::string id, FdRef session) : root_(root), id_(std::move(id)), session_(session) {}
    // Starts a process that touches nothing before finish(): for a caller that must first wait for the sandbox's end.
    void begin() noexcept; // NOLINT(bugprone-exception-escape): attempt_recorded catches it
    // Works until the deadline. Call it when nothing is mounted any more: what another session has mounted cannot be removed.
    void finish(Deadline deadline) noexcept; // NOLINT(bugprone-exception-escape): attempt_recorded catches it

private:
    const AsRoot &root_;
    bool begun_ = false;
    std::string id_;
    FdRef session_;
    std::vector<std::string> paths_;
    std::optional<Child> child_; // none where there is nothing to remove
};

// --- The temporary directories on disk. Root removes its own empty directories; a child with the agent's identity removes what the agent
// made.

// Removes the directory `path`, STATE_DIR/sessions/ID; a missing one is fine. When several processes do so, one works and the others wait
// for it. Throws Failure when something is left at the deadline.
void remove_scratch(const AsRoot &root, const std::string &path, Deadline deadline);

// Removes, in the background, files on disk of sessions that no longer exist: after a crash of the host, or because there was too much to
// remove. A launch begins it and waits for nothing: it was often another user who left those files.
class ScratchSweep {
public:
    // NOLINTNEXTLINE(bugprone-exception-escape): attempt_recorded catches it
    ScratchSweep(const AsRoot &root, const std::string &state_dir) noexcept;
    // Waits ten more seconds; what is left then is left to the next sweep.
    void finish() noexcept; // NOLINT(bugprone-exception-escape): attempt_recorded catches it

private:
    struct Removal {
        std::string id;
        std::string path; // which the child empties
        std::unique_ptr<Child> child;
    };
    std::vector<Removal> removals_;
};

} // namespace pi_agent
