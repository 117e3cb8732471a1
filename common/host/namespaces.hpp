// Which namespaces this process is in, and what is mounted there.
#pragma once

#include "common/base/fd.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace pi_agent {

// --- Which namespace a process is in (namespaces(7)).

struct NamespaceId {
    dev_t device;
    ino_t inode;
    friend bool operator==(const NamespaceId &, const NamespaceId &) = default;
};

// `process`: a number, "self", or "1" for the host's. None when it cannot be seen, or there is no such kind; then errno says why.
inline std::optional<NamespaceId> namespace_of(const std::string &process, const std::string &kind)
{
    struct stat facts {};
    if (stat(("/proc/" + process + "/ns/" + kind).c_str(), &facts) != 0) return std::nullopt;
    return NamespaceId{facts.st_dev, facts.st_ino};
}

// The host's own of these kinds ("mnt", "pid", …): their inodes, as text. Throws SystemFailure where one cannot be seen.
std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds);

// --- Whether this process can know what is root's: in a user namespace that somebody made for a shell of theirs, it cannot.

// Says so, and what to do, where the host's root has no number here: our own program, which is root's, seems to be nobody's then, and so
// does every file that root alone can have written. In a container with its own numbers, where root's programs are root's, nothing is
// wrong.
std::optional<std::string> problem_of_user_namespace();

// --- What is mounted where, as the kernel tells it: looking, and no mount call (runner/root/mount/mounts.hpp makes those).

// The id of the mount that a descriptor lies in (statx(2)), for comparing with others of now: it may be given again. Asks no file system.
std::uint64_t mount_id(FdRef fd);

// One line of /proc/self/mountinfo (proc(5)), unescaped.
struct MountEntry {
    std::uint64_t id;
    std::uint64_t parent;
    std::string point;
    std::string type;
    std::string source;
};

// Throws Failure(internal) for a line of another form.
MountEntry parse_mount(const std::string &line);

std::vector<MountEntry> list_mounts();

// The mount that a descriptor lies in; none where it was unmounted meanwhile.
const MountEntry *mount_that_holds(const std::vector<MountEntry> &mounts, FdRef directory);

// " (TYPE mounted at POINT)" of that mount, for messages; empty where there is none.
std::string name_mount(const std::vector<MountEntry> &mounts, FdRef directory);

// The mount points below `path`, relative to it, sorted, each once; not those that lie below another of them.
std::vector<std::string> topmost_mounts_below(const std::vector<MountEntry> &mounts, const std::string &path);

} // namespace pi_agent
