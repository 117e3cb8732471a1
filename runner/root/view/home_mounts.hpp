// Mounts of what a session sees of its user's home (policy: toolchains).
#pragma once

#include "common/base/ids.hpp"
#include "common/host/account.hpp"
#include "common/host/namespaces.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/scratch.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/view/root_tree.hpp"
#include "runner/wire/user_files.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

struct ShownHome {
    std::vector<std::string> notices;  // what the user should know, one text each
    std::vector<std::string> readable; // where the agent sees them; any bytes
    std::vector<std::string> caches;
};

// Toolchains as read-only clones, at their own path and where the tools inside look for them in the agent's home; caches there alone, each
// below an overlay of this session. In two steps, since systemd can build the unit during the second.
class HomeMounts {
public:
    // Borrows all of it but `home`. Adds to `tree` what the unit shows besides: a frame in the place of the home, and late mounts.
    HomeMounts(const AsRoot &root, const SessionDirectory &session, const HostView &view, OpenedHome home, const Policy &policy,
               RootTree &tree);

    // Makes the mount points in the agent's home, by a child that is the agent, and the mounts. What `defaults` puts there is not the
    // agent's own. An overlay's changes lie in `scratch` (of make_scratch). Lets go of the user's directories: what a session holds open
    // could not be unmounted outside. Once.
    // Throws Failure(unavailable) for what the kernel or the file system cannot do, unless the policy says best_effort.
    ShownHome make(const Account &user, const Account &agent, const StateDirectory &state, FdRef defaults, FdRef scratch);

private:
    struct Cache {
        std::size_t index; // in directories_
        DetachedMount lower;
        CacheLayer upper;
    };

    void leave_out(const HomeDirectory &directory, const std::string &why);
    bool can_be_shown(const HomeDirectory &directory);
    void make_own_places(const HostView &view);
    void require_same_places() const;
    void show_later(std::size_t index, const std::string &agent_home, DetachedMount mount);
    [[nodiscard]] DetachedMount make_overlay(const Cache &cache) const;
    void show_or_leave_out(std::size_t index, const std::function<void()> &step);
    void refuse_or_leave_out(const HomeDirectory &directory, const SystemFailure &failure);

    const AsRoot &root_;
    const SessionDirectory &session_;
    const Policy &policy_;
    RootTree &tree_;
    OpenedHome home_;
    std::vector<MountEntry> mounts_;
    std::vector<const HomeDirectory *> directories_; // that are shown
    std::vector<std::string> places_;                // of the same, in the agent's home
    std::set<std::string> own_places_;               // of toolchains, relative to the home
    std::vector<Cache> caches_;
    ShownHome shown_;
};

} // namespace pi_agent
