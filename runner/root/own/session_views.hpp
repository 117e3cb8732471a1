// What can be said about the sessions that live: whose, where, since when, and what each uses now.
#pragma once

#include "common/base/ids.hpp"
#include "common/host/identity.hpp"
#include "runner/wire/own_messages.hpp"

#include <optional>
#include <vector>

namespace pi_agent {

// In the order in which they started; those that are still being prepared come last. Only of `user` if one is given. Values of the record
// are harmless (common/record/record_event.hpp), names are plain.
std::vector<SessionView> look_at_sessions(const AsRoot &root, const std::optional<Uid> &user);

} // namespace pi_agent
