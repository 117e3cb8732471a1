// How processes answer each other: failures, patience, events, names of sessions.
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

// --- What a child of root's sends to its parent (runner/root/errand/errand.hpp): answers, progress and failures.

// The first byte of each packet.
constexpr char answer_tag = 'A';
constexpr char progress_tag = 'P';
constexpr char failure_tag = 'F';

// For tasks: messages that Child::receive understands.
void send_answer(FdRef channel, std::string_view bytes, const std::vector<int> &fds = {});
// A message with its descriptors (decode_packet).
template <typename Message>
requires std::is_class_v<Message> && requires(Encoder &to, const Message &one)
{
    Message::fields(to, one);
}
void send_answer(FdRef channel, const Message &message)
{
    Encoder encoder;
    encoder(message);
    send_answer(channel, encoder.bytes(), encoder.descriptors());
}
// Sends an answer of up to record_limit bytes, in as many messages as it needs.
void send_long_answer(FdRef channel, std::string_view bytes);
// "Still alive and working": restarts the parent's patience. `doing` is for people.
void send_progress(FdRef channel, std::string_view doing = {});
// The parent then throws it. Throws nothing itself: without a message the parent sees a child that died.
void send_failure(FdRef channel, const Failure &failure) noexcept;

// --- How long processes wait for each other during a start. A process that ends takes the others along, so these are for what stalls.

// For one whole config sync, on busy disks as well; each of its steps has the children's own patience (runner/root/errand/errand.hpp).
constexpr int sync_patience_seconds = 300;
// For the launch record: before it the runner waits for the sync and other children.
constexpr int launch_patience_seconds = sync_patience_seconds + 100;

// For a session that the administrator ends, from the first message to the last look: no step takes longer, and a process that is stopped
// is passed over. Together less than 15 seconds.
constexpr int asked_end_patience_seconds = 7;  // for the runner: the agent's two seconds of grace, its unit's stop, the record
constexpr int killed_end_patience_seconds = 3; // for systemd and the cleanup, after the runner was killed
constexpr int forced_end_patience_seconds = 4; // for what this process then does without them
static_assert(asked_end_patience_seconds + killed_end_patience_seconds + forced_end_patience_seconds < 15);

// The time of the unit that cleans up a session (TimeoutStopSec=), and of each part: the last processes, docker, a runner that must record
// the end, and then placeholders and temporary files.
constexpr int cleanup_unit_seconds = 20;
constexpr int cleanup_group_seconds = 4;
constexpr int cleanup_gate_seconds = 1; // it has one process
constexpr int cleanup_docker_seconds = 2;
constexpr int cleanup_record_seconds = 3;
constexpr int cleanup_placeholder_seconds = 2;
constexpr int cleanup_removal_seconds = 7;
static_assert(cleanup_group_seconds + cleanup_gate_seconds + cleanup_docker_seconds + cleanup_record_seconds + cleanup_placeholder_seconds +
                  cleanup_removal_seconds <
              cleanup_unit_seconds);

// --- What the child on the caller's side reports to its parent while a session runs: the first byte of each answer.

constexpr char handed_over_tag = 'S'; // pi-agent-exec has the standard descriptors
constexpr char gone_tag = 'E';        // the wrapper is gone, or broke the protocol
constexpr char message_tag = 'M';     // followed by the bytes of a message of the wrapper's

constexpr int request_patience_seconds = 5; // for the wrapper's request

// --- The names of a session and its units.

// An id is 128 random bits in hex. It is a part of unit names and paths, so its alphabet is fixed.
bool is_session_id(const std::string &text) noexcept;
std::string scope_name(const std::string &id);                        // pi-agent-run-ID.scope
std::optional<std::string> session_of_scope(const std::string &unit); // its ID, when it is such a name
std::string service_name(const std::string &id);                      // pi-agent-ID.service
std::string cleanup_name(const std::string &id);                      // pi-agent-cleanup-ID.service
std::string gate_name(const std::string &id);                         // pi-agent-gate-ID.service

} // namespace pi_agent
