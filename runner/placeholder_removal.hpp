// Removing the placeholders that a session made in its user's project, whoever it is that cleans up.
#pragma once

#include "common/channel.hpp"
#include "common/identity.hpp"

#include <string>

namespace pi_agent {

// Of a session's directory: links whose texts are the placeholders' paths, above before below.
extern const char *const placeholders_directory;

// As the session's user, until the deadline; what is left then has no effect, and a later session in the repository removes it. `session`
// is the directory of the session `id`, where nothing is mounted any more: what another session has mounted cannot be removed.
void remove_placeholders(const AsRoot &root, const std::string &id, FdRef session, Deadline deadline) noexcept;

} // namespace pi_agent
