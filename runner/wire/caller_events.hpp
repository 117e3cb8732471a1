// What the child on the caller's side tells its parent while a session runs: the first byte of each answer.
#pragma once

namespace pi_agent {

constexpr char handed_over_tag = 'S'; // the standard descriptors are with pi-agent-exec
constexpr char gone_tag = 'E';        // the wrapper is gone, or broke the protocol
constexpr char message_tag = 'M';     // followed by the bytes of a message of the wrapper's

constexpr int request_patience_seconds = 5; // for the wrapper's request

} // namespace pi_agent
