// The one home of the mount calls: each takes root, works on descriptors, and attaches nothing whose attributes were not set before.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// A mount that is not in any tree yet (open_tree(2), fsmount(2)); it vanishes when dropped.
struct DetachedMount {
    UniqueFd fd;
};

enum class Submounts { leave_out, take_along };

struct MountAttributes {
    bool read_only = false;
    const UniqueFd *id_map = nullptr; // a user namespace, borrowed
};

// A private, nosuid, nodev copy of the mount and directory (or file) behind `source`. Made private while detached: a copy that stays in the
// host's peer group would put mounts made inside onto the host. Throws SystemFailure; EINVAL or EPERM with an id map: the file system
// cannot.
DetachedMount clone_mount(const AsRoot &root, FdRef source, Submounts submounts, const MountAttributes &attributes);

struct MountOption {
    const char *key;
    std::string value;
};

enum class Execution { denied, allowed };

// A new file system instance ("tmpfs", "devpts"), nosuid, noexec unless allowed, and for tmpfs nodev.
DetachedMount new_filesystem(const AsRoot &root, const char *type, const std::vector<MountOption> &options, bool read_only,
                             Execution execution = Execution::denied);

// For good, also for whoever has its directory open. Throws SystemFailure; EBUSY: somebody is writing there.
void make_read_only(const AsRoot &root, const DetachedMount &mount);

// Puts it on the directory or file behind `target`.
void attach(const AsRoot &root, const DetachedMount &mount, FdRef target);

// Takes away whatever is mounted exactly at `path` (all of it, lazily, following no symlink). False when nothing was.
bool detach_at(const AsRoot &root, const std::string &path);

// Runs `task` in a thread with a mount table of its own: no other process sees what it attaches, and that goes when `task` ends. A change
// in the host's table would make systemd read that whole table. `task` finds the same paths, by new descriptors. Throws what `task` throws.
void with_own_mounts(const AsRoot &root, const std::function<void()> &task);

// The same with the mount table of other processes, a mount namespace: what it attaches is there, and in no other table.
void with_mounts_of(const AsRoot &root, FdRef mount_namespace, const std::function<void()> &task);

// The same with their network namespace: sockets that it makes stay there, whoever gets them.
void with_network_of(const AsRoot &root, FdRef network_namespace, const std::function<void()> &task);

// Makes the mount behind `path` shared, so that an unmount below it takes effect everywhere at once.
void make_shared(const AsRoot &root, const std::string &path);

// --- Mounts that a session's view gets after systemd has made it, in its own mount table alone.

// In the host's table, systemd would visit each mount several times: as a part of the unit, and as one of the host's. Not for directories
// that the user could rename meanwhile: only a mount in the host's table keeps one where it is.
struct LateMount {
    DetachedMount mount;
    std::string path; // as the agent sees it; any bytes
};

// Attaches them in the mount namespace of the launcher, once it runs, and before it has started anything. Lets go of them. Throws where one
// cannot be attached.
void attach_late(const AsRoot &root, FdRef mount_namespace, std::vector<LateMount> &mounts);

// --- Which mount calls a system-call filter around this host withholds from root.

// Names, in no particular order; empty where root can make all of them. Each is tried with arguments with which it does nothing. For root
// with CAP_SYS_ADMIN: without that the kernel itself refuses them.
std::vector<std::string> refused_mount_calls(const AsRoot &root);

// --- The id map of a project mount: each id maps to itself, but the user's and the agent's ids are exchanged (design, launch step 6).

// Lines for /proc/PID/uid_map or gid_map (user_namespaces(7)): every id maps to itself, `first` to `second` and back. A map of one id would
// make every file of another owner unusable.
std::string swap_map(std::uint32_t first, std::uint32_t second);

enum class Others {
    kept,     // as above
    unmapped, // only the user's uid is mapped: files of other owners belong to nobody inside, and an overlay copies none of them up
};

// A user namespace with these maps, for mount_setattr(2). Nothing ever runs in it.
UniqueFd make_id_map(const AsRoot &root, const Account &user, const Account &agent, Others others = Others::kept);

} // namespace pi_agent
