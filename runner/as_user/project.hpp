// What a caller hands over: descriptors, working directory and roots, opened again as the caller.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <array>
#include <string>

namespace pi_agent {

// --- Opens the working directory and the roots again as the caller (design rules 6 and 7).

// In a child that is the caller: opens the working directory, each root and what git knows, and answers with them. `claimed_cwd` came from
// the caller: its link text, device, inode and mount id must be those of the path opened here.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel);

// --- Takes everything that the wrapper sends, as the caller. Root never holds a descriptor of a user's, not even to close it: close(2) of
// a file of theirs may wait for them (FUSE, FLUSH), beyond SIGKILL, and a socket may linger (SO_LINGER, socket(7)).

// In a child that is the caller, from the request to the session's end. `wrapper`: its socket; `channel` leads to the runner
// (runner/root/errand/receiver.hpp).
void serve_caller(const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper, FdRef channel);

// --- Which descriptors a caller may hand to the agent as stdin, stdout and stderr (design rule 4).

// Throws Failure(denied) unless each is a FIFO, regular file, socket, or /dev/null, /dev/zero or /dev/full: a directory reaches host
// files through "..", an O_PATH descriptor is a directory in disguise, and a terminal can be typed into.
// Those that are on the user's terminal did not come: the session's own takes their place.
void check_stdio(const std::array<UniqueFd, 3> &stdio, const OnTerminal &on_terminal);

// As the caller: lets the agent open their own anonymous pipes by name (/dev/stdout, /dev/stderr), for what it may do with them anyway.
// Files keep the modes that the caller gave them.
void let_pipes_be_opened(const std::array<UniqueFd, 3> &stdio);

} // namespace pi_agent
