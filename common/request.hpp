// What the wrapper asks of the runner, and what the two say to each other afterwards. The runner treats every byte as hostile.
#pragma once

#include "common/channel.hpp"

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

// The environment variables that describe the user's terminal and language: the only ones that leave the user's shell.
bool is_presentation_variable(std::string_view name) noexcept;

struct Request {
    std::vector<std::string> arguments;    // of the agent, without argv[0]; no NUL bytes
    std::vector<std::string> presentation; // NAME=VALUE, presentation variables only
    unsigned umask = 077;                  // of the caller: new files in the project get the modes that the caller's own would
};

// A request with its descriptors: all owned, close-on-exec, nothing known about them yet.
struct ReceivedRequest {
    Request request;
    UniqueFd cwd;
    std::array<UniqueFd, 3> stdio;
};

// Sends `request` with cwd (O_PATH) and the three stdio descriptors, which are borrowed.
void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline);

// A request's own bytes. decode_request throws ProtocolError for anything that encode_request does not make.
std::string encode_request(const Request &request);
Request decode_request(std::string_view bytes);

// Throws ProtocolError for anything that is not exactly one well-formed request with four descriptors.
ReceivedRequest receive_request(FdRef channel, Deadline deadline);

// Runner to wrapper.
struct FailureReport {
    ExitStatus status;
    std::string text;
};
struct Notice {
    std::string text;
};
struct AgentEnded {
    bool by_signal; // value is then the signal's number, else the exit code
    int value;
};
using RunnerMessage = std::variant<FailureReport, Notice, AgentEnded>;
constexpr std::size_t small_message_limit = 64; // bytes of any message that the wrapper sends after its request
std::string encode(const RunnerMessage &message);
RunnerMessage decode_runner_message(std::string_view bytes);

// Wrapper to runner, and runner to pi-agent-exec: deliver this signal to the agent.
std::string encode_signal(int number);
int decode_signal(std::string_view bytes); // throws ProtocolError for a signal that is never forwarded
bool is_forwarded_signal(int number) noexcept;

} // namespace pi_agent
