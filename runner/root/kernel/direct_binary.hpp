// Whether the agent's program can be run past the wrapper (wrapper.hide_direct_binary): an upgrade by npm or apt may have opened it again.
#pragma once

#include "common/policy/policy.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// By its mode and those of the directories on the way to it, links resolved. False for what is not there.
bool can_be_run_by_all(const std::string &path);

// What the user is told at a start; none when it is hidden, or need not be.
std::optional<std::string> open_program_notice(const Policy &policy);

} // namespace pi_agent
