// Answers the agent's calls that the filter asks about (set_gid_calls() and those after it in runner/filter/call_rules.hpp).
#pragma once

#include "common/base/fd.hpp"

#include <sys/types.h>

namespace pi_agent {

// `path` as the process names it, translated for another one: /proc/self and /dev/fd become those of `thread`.
std::string seen_by(pid_t thread, const std::string &path);

// Runs on a thread of its own, for as long as this process lives. `questions`: what install_agent_call_filter() returned. `changer`: the
// channel of a process that changes modes (runner/as_agent/directory_modes.hpp). This thread only finds out what a caller means, as that
// caller could, and that decides nothing: no call that gives the bit goes on (seccomp_unotify(2) says why). Giving a file the group that it
// already has means doing nothing. A list that equals a mode is set as by chmod(2). Any other list goes on, and the kernel gives nobody the
// bit by it.
void answer_set_gid_calls(UniqueFd questions, UniqueFd changer);

} // namespace pi_agent
