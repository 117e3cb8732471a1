// Has a child, as the caller, copy the files that the caller names on the command line, for the session to see.
#pragma once

#include "common/decide/agent_places.hpp"
#include "common/host/account.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/root/errand/session_watch.hpp"
#include "runner/root/mount/mounts.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct NamedCopies {
    HandedFiles handed;
    std::optional<DetachedMount> mount; // read-only, to be attached at copies_inside; none where nothing was copied
};

// The copies are in memory, in a file system of this session's own and of a bounded size. The caller can write to it until this returns.
// Throws what the child refuses.
NamedCopies copy_for_session(const AsRoot &root, const Account &user, const std::vector<ArgumentFile> &files, const ShownPlaces &shown,
                             const AgentPlaces &agents, const SessionWatch &watch);

} // namespace pi_agent
