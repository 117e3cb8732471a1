// Mounts of what a session sees of its user's home (policy: toolchains).
#pragma once

#include "common/account.hpp"
#include "common/policy.hpp"
#include "runner/home_directories.hpp"
#include "runner/host_view.hpp"
#include "runner/mounts.hpp"
#include "runner/root_tree.hpp"
#include "runner/session_directory.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// To be attached in the unit's own mount table, when that is there. In the host's, systemd would visit each mount several times: as a part
// of the unit, and as one of the host's.
struct LateMount {
    DetachedMount mount;
    std::string top;   // as the agent sees it: a directory whose path nobody but root can change
    std::string place; // beneath it; any bytes
};

struct ShownHome {
    std::vector<std::string> notices;  // what the user should know, one text each
    std::vector<std::string> readable; // where the agent sees them; any bytes
    std::vector<std::string> caches;
    std::vector<LateMount> mounts;
};

// Toolchains as read-only clones, at their own path and where the tools inside look for them in the agent's home; caches there alone, each
// below an overlay of this session, whose changes lie in `scratch` (of make_scratch). The mount points in the agent's home are made by a
// child that is the agent; what `defaults` puts there is not the agent's own. `tree` has its home mounted already, and gets what the unit
// has to show besides. `home` is let go of: what a session holds open could not be unmounted outside. Throws Failure(unavailable) for what
// the kernel or the file system cannot do, unless the policy says best_effort.
ShownHome show_home_directories(const AsRoot &root, const SessionDirectory &session, const HostView &view, OpenedHome home,
                                const Policy &policy, const Account &agent, const StateDirectory &state, FdRef defaults, FdRef scratch,
                                RootTree &tree);

// Once the launcher of the session waits for its record. Lets go of them.
void attach_late(const AsRoot &root, const std::string &session_id, std::vector<LateMount> &mounts);

} // namespace pi_agent
