// A session on a node of the cluster: streams and messages between two hosts, srun, the carrier, and the node's side.
#pragma once

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

} // namespace pi_agent
