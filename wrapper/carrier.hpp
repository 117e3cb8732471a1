// A session on a node of the cluster: srun, the carrier that stands where the runner of this host would, and the node's side.
#pragma once

#include "common/ask/runner_process.hpp"
#include "common/base/request.hpp"

#include <memory>

namespace pi_agent {

// What asks for a node, and starts the wrapper there: a program with its arguments.
struct JobCommand {
    std::string program;
    std::vector<std::string> arguments; // without its own name
};

// srun as a child of the carrier's: asks for a job, and connects its task's input and output with two pipes.
class SrunProcess {
public:
    // It ends when this process does. Throws Failure(no_node) if it cannot be started.
    explicit SrunProcess(const JobCommand &command);

    [[nodiscard]] UniqueFd take_input() noexcept { return std::move(input_); }   // what is written is the task's input
    [[nodiscard]] UniqueFd take_output() noexcept { return std::move(output_); } // the task's output
    [[nodiscard]] FdRef error() const noexcept { return error_; }
    // Reads what it, or the task, says on standard error, and closes that at its end.
    void hear_error();

    // Takes the request for a job back.
    void cancel();
    // It ends by itself: its words for a message, with a colon before them, or nothing.
    std::string explain_end();
    // All that was said, harmless, once it has ended, by the deadline or until `impatience` can be read.
    std::string wait_for_end(Deadline deadline, FdRef impatience);

private:
    UniqueFd input_;
    UniqueFd output_;
    UniqueFd error_;
    pid_t pid_ = -1;
    std::string said_;
};

// A message of the node's for this host's wrapper: unlike this host's runner, whatever runs there is heard, so texts become harmless.
std::string harmless_message(RunnerMessage message);

// The carrier: a child of the wrapper's that stands where the runner of this host would, and carries the session to a node of the cluster.

constexpr int asking_patience_seconds = 30;   // for a request to be taken, on a node and by its carrier
constexpr int farewell_patience_seconds = 20; // for the runner's own stop and cleanup

class CarrierProcess : public SessionPeer {
public:
    explicit CarrierProcess(const JobCommand &command);

    [[nodiscard]] std::string name() const override { return "the process of pi that asks for a node (" + std::to_string(pid_) + ")"; }
    [[nodiscard]] FdRef channel() const noexcept override { return channel_; }
    [[nodiscard]] bool has_ended() const noexcept override { return ended_; }
    void reap() override;
    void require_orderly_end() override;
    [[noreturn]] void explain_silence() override;
    // Waits until the job has ended, and shows what it still said: what the session left, and the words of srun.
    void bid_farewell(FdRef signals, const std::function<bool()> &has_had_enough) override;

private:
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool ended_ = false;
    int status_ = 0;
};

// --- What carrier and node say to each other beside the streams (wrapper/tunnel.hpp): a tag, and what it says.

constexpr char hello_tag = 'H';   // to the node: Hello. From it: its name
constexpr char message_tag = 'M'; // a message between wrapper and runner
constexpr char gone_tag = 'E';    // the wrapper says nothing more
constexpr char heard_tag = 'T';   // to the node: its last message has come, and nothing follows this one

struct Hello {
    std::string version; // of pi-agent: both are of one build, because messages have no other version
    std::string directory;
    std::string request; // encode_request
    std::string scancel; // which ends the job when nobody else is left to do it
};
std::string encode(const Hello &hello);
Hello decode_hello(std::string_view bytes);

// The wrapper's part on a node of the cluster: srun starts it there, and it stands between that node's runner and a carrier.

// The option by which a carrier asks for it.
constexpr const char *node_option = "--pi-agent-on-node";

// Speaks with the carrier over standard input and output. What it says afterwards goes to standard error, which srun passes on.
// Refusals, too, are told to the carrier: the exit status is 0 if it heard everything.
int serve_node();

} // namespace pi_agent
