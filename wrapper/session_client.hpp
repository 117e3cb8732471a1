// The wrapper's side of a session: what it decides before it asks, what it says to its user, how it asks, and how it ends.
#pragma once

#include "common/as_user/user_paths.hpp"

#include "wrapper/carrier.hpp"
#include "wrapper/ports.hpp"

namespace pi_agent {

// --- The wrapper's own options: they begin with --pi-agent- and come first; everything else goes to the agent unchanged.

struct WrapperOptions {
    bool help = false;
    bool explain = false;
    bool on_node = false; // for a session that was asked for elsewhere (wrapper/carrier.hpp)
    std::vector<AskedPort> ports = {};
    Request request = {}; // what of it the options say; the arguments go to the agent, or to the shell that replaces it
};

// `pi update` without a target, or with one that is pi itself: root owns the agent's program, and no session can change it.
bool asks_for_self_update(const std::vector<std::string> &agent_arguments);

// Throws Failure(usage).
WrapperOptions parse_options(int argc, const char *const *argv);

extern const char *const wrapper_help;

// For a user whose agent failed while the policy closes its network. Agents only say "Connection error", after a long silence. A line that
// names the policy's key, or the user's own option (--pi-agent-network); empty if the network is open, or if the agent succeeded. Nobody
// here knows why the agent failed. So it says what was out of reach, not that this was the reason.
std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended);

// What the wrapper itself finds in the policy, to refuse early, with friendly messages. The runner decides again, and only that counts.
struct EarlyLook {
    std::string decision; // a sentence about what is allowed, for --pi-agent-debug
    std::string cwd;      // canonical
    std::string root;     // the root that contains it
    std::string home;     // of the user
    ProjectsPolicy projects;
    NetworkPolicy network;
    bool clipboard;                        // the agent may set the user's clipboard
    AgentPlaces agents;                    // where agents of this user write
    std::vector<std::string> read_as_user; // by a start
    std::optional<JobCommand> job;         // sessions run in jobs of the cluster, for which this asks
};

// The variables of the user's shell that a session may have, TERM's description if the user has one of their own, and the names of keys
// that stay outside.
void put_variables_into(Request &request, const EarlyLook &look);

// Opens the working directory and looks. Throws EarlyRefusal: denied, configuration or unavailable.
UniqueFd open_cwd();
EarlyLook refuse_early(FdRef cwd, const AskedOfStart &asked);

// best_effort: the user's own entry in the journal, whose _UID says who wrote it. In a session there is no journal.
void record_refusal(const EarlyRefusal &refusal, Program program) noexcept;

// --- What it says, how it asks, and how it ends.

// Says something on standard error, where a reader that does not read, and a terminal that is paused, hold nothing up: waits a second at
// most, and not again until something was taken. best_effort: what is not taken by then is lost.
void say(std::string_view text) noexcept;

// The same of a line of pi's own, fitted to the terminal (common/base/terminal_text.hpp). `raw`: no line feed returns the cursor there.
void tell(const std::string &line, bool is_failure = false, bool raw = false);
// The same of whole lines, each with its "pi: ".
void tell_lines(const std::string &lines);

// A line on the terminal of standard error that shows the current step. It disappears before anything else is written.
class ProgressLine {
public:
    // On a line of its own, or after the agent's output, which may have ended in the middle of a line.
    enum class Place { own_line, behind_output };
    explicit ProgressLine(Place place = Place::own_line) noexcept : place_(place) {}
    ProgressLine(const ProgressLine &) = delete;
    ProgressLine &operator=(const ProgressLine &) = delete;
    ~ProgressLine() { clear(); }

    // Only if standard error is a terminal that can erase a line (not TERM=dumb).
    void show(const std::string &text);
    void clear();

private:
    Place place_;
    bool is_shown_ = false;
};

// The id of a session; empty before an agent has started. Who waits for it hears it at once.
class SessionId {
public:
    explicit SessionId(std::function<void(const std::string &id)> heard = {}) : heard_(std::move(heard)) {}
    SessionId &operator=(const std::string &id)
    {
        id_ = id;
        if (heard_) heard_(id_);
        return *this;
    }
    operator const std::string &() const noexcept { return id_; } // NOLINT(google-explicit-constructor): it is that text
    [[nodiscard]] bool empty() const noexcept { return id_.empty(); }
    void clear() noexcept { id_.clear(); }

private:
    std::string id_;
    std::function<void(const std::string &id)> heard_;
};

// What ends a wait of the wrapper's: a signal, which is for the agent first, and for this process if it reaches nothing.
class AskedEnd {
public:
    // A signal has come and is on its way. Comes it once more before it is answered, then this process waits no more.
    void ask(int number);
    // The agent has it.
    void answered() noexcept { due_.reset(); }
    // For poll(2): when to look.
    [[nodiscard]] Deadline due() const noexcept { return due_.value_or(Deadline::max()); }
    // Call it when nothing is heard: this process may be the late one.
    void look() noexcept { is_over_ = is_over_ || (due_ && Clock::now() >= *due_); }
    // This process waits no more.
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    // As this process then ends. Says what goes on without it, and forgets the session's id: nothing looks at what a session left that may
    // still be ending.
    [[nodiscard]] AgentEnded tell(const SessionPeer &peer, bool has_runner, SessionId &session) const;

private:
    int number_ = 0;
    Deadline asked_at_{};
    std::optional<Deadline> due_; // for the answer
    bool is_over_ = false;
};

// Ends this process as the agent ended: its exit status, or its signal again, without a core file.
[[noreturn]] void end_as(const AgentEnded &ended);

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output();

struct ClientInput {
    Request request;
    FdRef cwd;
    std::array<int, 3> stdio; // borrowed
    std::optional<UserTerminal> terminal;
    bool reaches_clipboard; // the agent's output may; the policy's wrapper.clipboard
    SessionPorts ports;
    std::optional<JobCommand> job = {}; // for a session on a node of the cluster, instead of this host
};

// Throws Failure with the refusal of the runner or sudo. Restores the terminal in every case. `session` becomes the session's id, even if
// this throws later; it stays empty if no agent started.
AgentEnded run_client(ClientInput input, SessionId &session);

} // namespace pi_agent
