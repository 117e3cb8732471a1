// The carrier: a child of the wrapper's that stands where the runner of this host would, and carries the session to a node of the cluster.
#pragma once

#include "common/ask/runner_process.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

constexpr int asking_patience_seconds = 30;   // for a request to be taken, on a node and by its carrier
constexpr int farewell_patience_seconds = 20; // for the runner's own stop and cleanup

// What asks for a node, and starts the wrapper there (wrapper/node_side.hpp): a program with its arguments.
struct JobCommand {
    std::string program;
    std::vector<std::string> arguments; // without its own name
};

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

// The runner of this host, or a carrier for the job.
std::unique_ptr<SessionPeer> reach_peer(const std::optional<JobCommand> &job);

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

} // namespace pi_agent
