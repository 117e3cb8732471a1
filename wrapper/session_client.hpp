// The wrapper's side of a session: what it decides before it asks, what it says to its user, how it asks, here or by a job, and how it
// ends.
#pragma once

#include "common/as_user/user_paths.hpp"
#include "common/ask/runner_process.hpp"
#include "wrapper/terminal_link.hpp"

#include <deque>

namespace pi_agent {

// --- Streams and messages between two parts of the wrapper on two hosts, and what is at the ends of a stream.

constexpr std::size_t piece_limit = packet_limit; // bytes that a stream carries at once

// What is at this end of a stream. Nothing here waits.
class StreamEnd {
public:
    StreamEnd() = default;
    StreamEnd(const StreamEnd &) = delete;
    StreamEnd &operator=(const StreamEnd &) = delete;
    virtual ~StreamEnd() = default;

    [[nodiscard]] virtual FdRef fd() const noexcept = 0;
    // Reads one piece.
    virtual Outcome read(std::string &piece) = 0;
    // Takes what it can from the beginning of `piece`.
    virtual Outcome write(std::string &piece) = 0;
};

// A pipe, a file, a socket: a descriptor of this process's, or one that others also have, whose flags stay as they are.
class DescriptorEnd : public StreamEnd {
public:
    enum class For { reading, writing, packets };
    DescriptorEnd(UniqueFd fd, For purpose);
    [[nodiscard]] FdRef fd() const noexcept override { return fd_; }
    Outcome read(std::string &piece) override;
    Outcome write(std::string &piece) override;

private:
    UniqueFd fd_;
    bool is_socket_ = false;
    bool may_block_ = false;
};

// The pty of a session as the end of a tunnel's stream, on the node where the session runs. Each piece is a packet
// (wrapper/terminal_link.hpp). Settings come before the bytes that they hold for.
class PtyEnd : public StreamEnd {
public:
    explicit PtyEnd(UniqueFd master) : master_(std::move(master)) {}
    [[nodiscard]] FdRef fd() const noexcept override { return master_.fd(); }
    Outcome read(std::string &piece) override;
    Outcome write(std::string &piece) override;

private:
    // True if the agent changed something.
    bool look_at_settings();

    PtyMaster master_;
    Pump output_;
    std::string bytes_; // read, and not told yet: behind the settings that hold for them
    std::optional<TerminalState> known_;
};

// Each flows one way, but the terminal's, which flows both.
enum class Stream : std::uint8_t { input, output, error, terminal };
constexpr std::size_t stream_count = 4;

// Streams and messages over one pair of byte streams that somebody else connects.
class Tunnel {
public:
    using Hear = std::function<void(const std::string &message)>;

    // Takes over both; neither is shared with another process that minds O_NONBLOCK.
    Tunnel(UniqueFd in, UniqueFd out);

    enum class Way { here_to_there, there_to_here, both };
    void attach(Stream stream, Way way, std::unique_ptr<StreamEnd> end);
    void say(std::string_view message);

    void add_waits(std::vector<pollfd> &waits) const;
    // Everything that can be done now. Messages are heard after the streams have what was sent before them. Throws ProtocolError.
    void serve(const Hear &hear);

    // For poll(2) with a timeout of `milliseconds` (-1: none): each side must say every few seconds that it lives.
    [[nodiscard]] static int patience(int milliseconds) noexcept;

    // The process there is gone, or silent for a minute: who connects the two may be killed, and one side be left that is never told.
    [[nodiscard]] bool has_ended() const noexcept;

    // Behind what has been said, nothing more is said or read here. What comes is still written.
    void fall_silent() noexcept;

    // Nothing more will be written into what this side reads: the streams end when they have been silent for a moment.
    void finish() noexcept;
    // All that this side reads has ended.
    [[nodiscard]] bool has_read_all() const noexcept;
    // All that came for this side's ends is there.
    [[nodiscard]] bool has_written_all() const noexcept;

private:
    struct Piece {
        std::string rest;
        std::size_t size;
    };
    struct Flow {
        std::unique_ptr<StreamEnd> end;
        bool reads = false;
        bool writes = false;
        bool ends_behind = false; // the end comes behind the pieces
        std::size_t on_the_way = 0;
        std::size_t held = 0; // bytes of:
        std::deque<Piece> pieces;
    };

    void receive();
    void take_frames();
    void take_frame(char kind, Stream stream, std::string_view payload);
    void send(char kind, Stream stream, std::string_view payload);
    void write_pieces(Flow &flow, Stream stream);
    void read_piece(Flow &flow, Stream stream);
    void end_reading(Flow &flow, Stream stream);
    void flush();
    [[nodiscard]] static bool may_read(const Flow &flow) noexcept;
    [[nodiscard]] Flow &flow_of(Stream stream) { return flows_.at(static_cast<std::size_t>(stream)); }

    UniqueFd in_;
    UniqueFd out_;
    std::array<Flow, stream_count> flows_;
    std::string incoming_;
    std::string outgoing_;
    std::vector<std::string> messages_;
    bool in_begun_ = false; // the other side speaks; before that, others do who write there
    bool in_ended_ = false;
    bool finishing_ = false;
    bool silent_ = false;
    Deadline last_heard_{};
    Deadline last_said_{};
    Deadline last_read_{};
    std::size_t read_while_finishing_ = 0;
};

// --- A session on a node of the cluster: srun, the carrier that stands where the runner of this host would, and the node's side.

// What asks for a node, and starts the wrapper there: a program with its arguments.
struct JobCommand {
    std::string program;
    std::vector<std::string> arguments; // without its own name
};

// What parts of the wrapper say to each other, and how they wait.

// best_effort: who is gone is seen by the end of the channel.
void tell(FdRef channel, std::string_view message) noexcept;

// For another process, which throws it again.
inline FailureReport report_of(const Failure &failure)
{
    return {failure.status(), failure.what(), failure.kind()};
}

// For a child: none of the caller's descriptors but this channel, as 3: a pipe that is kept has no end for who reads it. The keyboard's
// signals are not for it.
bool keep_only(int channel) noexcept;

// Which of them can be read, `impatience` before `input`; neither once the deadline has passed.
enum class Came { nothing, input, impatience };
Came wait_for_either(FdRef input, FdRef impatience, Deadline deadline);

constexpr int asking_patience_seconds = 30;   // for a request to be taken, on a node and by its carrier
constexpr int farewell_patience_seconds = 20; // for the runner's own stop and cleanup

// The carrier: a child of the wrapper's that stands where the runner of this host would, and carries the session to a node of the cluster.
// It waits until the job has ended, and shows what that still said: what the session left, and the words of srun.
std::unique_ptr<SessionPeer> start_carrier(const JobCommand &command);

// --- What carrier and node say to each other beside the streams: a tag, and what it says.

constexpr char hello_tag = 'H';   // to the node: Hello. From it: its name
constexpr char relayed_tag = 'M'; // a message between wrapper and runner
constexpr char left_tag = 'E';    // the wrapper says nothing more
constexpr char heard_tag = 'T';   // to the node: its last message has come, and nothing follows this one

struct Hello {
    std::string version; // of pi-agent: both are of one build, because messages have no other version
    std::string directory;
    std::string request; // encode_request
    std::string scancel; // which ends the job when nobody else is left to do it
    static void fields(auto &archive, auto &self) { archive(self.version, self.directory, self.request, self.scancel); }
};

// The option by which a carrier asks for the wrapper's part on a node of the cluster.
constexpr const char *node_option = "--pi-agent-on-node";

// That part: srun starts it there, and it stands between that node's runner and a carrier. Speaks with the carrier over standard input and
// output. What it says afterwards goes to standard error, which srun passes on. Refusals, too, are told to the carrier: the exit status is
// 0 if it heard everything.
int serve_node();

// --- Ports of a session's own network on the user's loopback (--pi-agent-port), for that user alone.

struct AskedPort {
    std::uint16_t here = 0;   // on the host's loopback
    std::uint16_t inside = 0; // on the session's
};

// "3000", or "8080:3000" for another number here. Throws Failure(command_line).
AskedPort parse_asked_port(const std::string &text);

// What listens here. The wrapper alone does, with its user's rights: it accepts, asks the kernel whose the other end is, and hands two
// pipes to the session's first process, which connects there (runner/inside/agent_process.cpp). No side gets a socket of the other's
// network.
class SessionPorts {
public:
    // Takes the ports. Throws Failure where another program has one of them, so that nobody's program stands in for the session's.
    explicit SessionPorts(std::vector<AskedPort> ports);

    // The session's end of the channel, for the request; it is closed here once the request is sent.
    [[nodiscard]] FdRef for_session() const noexcept { return theirs_; }
    void let_go_of_session_end() noexcept { theirs_.reset(); }

    // Accepts from now on, on a thread of its own, until the session's first process has ended.
    void serve();

private:
    struct Listener {
        UniqueFd fd;
        std::uint16_t inside;
    };
    struct Serving;

    std::vector<Listener> listeners_;
    UniqueFd ours_;
    UniqueFd theirs_;
};

// Whether the program at the other end of this connection within the host belongs to this process's user.
bool belongs_to_user(FdRef connection);

// --- The wrapper's own options: they begin with --pi-agent- and come first; everything else goes to the agent unchanged.

struct WrapperOptions {
    bool help = false;
    bool explain = false;
    bool on_node = false; // for a session that was asked for elsewhere
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
