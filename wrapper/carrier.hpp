// A session on a node of the cluster: srun, the carrier that stands where the runner of this host would, and the node's side.
#pragma once

#include "common/ask/runner_process.hpp"
#include "common/base/request.hpp"

namespace pi_agent {

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
    static void fields(auto &archive, auto &self) { archive(self.version, self.directory, self.request, self.scancel); }
};

// The option by which a carrier asks for the wrapper's part on a node of the cluster.
constexpr const char *node_option = "--pi-agent-on-node";

// That part: srun starts it there, and it stands between that node's runner and a carrier. Speaks with the carrier over standard input and
// output. What it says afterwards goes to standard error, which srun passes on. Refusals, too, are told to the carrier: the exit status is
// 0 if it heard everything.
int serve_node();

} // namespace pi_agent
