// What a child of root's says to its parent (runner/root/errand/child.hpp): answers, progress and what went wrong.
#pragma once

#include "common/base/channel.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// The first byte of each packet.
constexpr char answer_tag = 'A';
constexpr char progress_tag = 'P';
constexpr char failure_tag = 'F';

// For tasks: messages that Child::receive understands.
void send_answer(FdRef channel, std::string_view bytes, const std::vector<int> &fds = {});
// For an answer of up to record_limit bytes, in as many messages as it takes.
void send_long_answer(FdRef channel, std::string_view bytes);
// "Still alive and working": restarts the parent's patience. `doing` is for people.
void send_progress(FdRef channel, std::string_view doing = {});
// What the parent throws then. Throws nothing: without a word the parent sees a child that died.
void send_failure(FdRef channel, ExitStatus status, const std::string &text) noexcept;

} // namespace pi_agent
