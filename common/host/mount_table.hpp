// What is mounted where, as the kernel tells it: looking, and no mount call (runner/root/mount/mounts.hpp makes those).
#pragma once

#include "common/base/fd.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pi_agent {

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
