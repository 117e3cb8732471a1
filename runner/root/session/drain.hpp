// A drained host: no session starts until the administrator ends that, or the host is booted (decision 80). Sessions that live go on.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// --- What `pi-agentctl drain` leaves for every start, in /run/pi-agent, which only root can enter.

struct Drain {
    std::string message;      // the administrator's words for users, harmless; may be empty
    std::uint64_t since_usec; // since 1970
};

// None while sessions may start. Throws SystemFailure where nobody can tell.
std::optional<Drain> find_drain(const AsRoot &root);

// A start that is under way then sees it, or shows as a session already: it makes its directory first and looks afterwards. So call this
// first, and look for sessions afterwards.
void begin_drain(const AsRoot &root, const std::string &message);

// False where nothing was to end.
bool end_drain(const AsRoot &root);

// --- Root's own tries of the sandbox go on meanwhile (apply, doctor): they start a canary as a user.

// While the descriptor is open, canaries of this user may start. Leaves no trace: a lock goes with its holder.
UniqueFd let_canary_start(const AsRoot &root, Uid user);
bool may_canary_start(const AsRoot &root, Uid user);

} // namespace pi_agent
