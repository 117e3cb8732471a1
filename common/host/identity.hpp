// What this process is: its ids, its namespaces, what is mounted there, and its parents.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/account.hpp"

#include <functional>

namespace pi_agent {

// --- Privilege as types: a process claims root once, and becoming a user gives it up for good. The one home of the set*id calls.

// Proof that this process is root with all three ids. Code that needs root takes it as a parameter.
class AsRoot {
public:
    // Throws Failure(denied) unless real, effective and saved user ids are 0. Gives up every group but 0, and throws where it cannot.
    static AsRoot claim();
    // For a forked child that will become somebody else; the parent keeps its own claim.
    [[nodiscard]] AsRoot for_child() const noexcept { return AsRoot(); }

    AsRoot(AsRoot &&) noexcept = default;
    AsRoot &operator=(AsRoot &&) noexcept = default;
    AsRoot(const AsRoot &) = delete;
    AsRoot &operator=(const AsRoot &) = delete;
    ~AsRoot() = default;

private:
    AsRoot() noexcept = default;
};

// Proof that this process gave up root and cannot regain it.
class AsUser {
public:
    [[nodiscard]] Uid uid() const noexcept { return uid_; }

private:
    friend AsUser become_user(AsRoot root, const Account &account);
    explicit AsUser(Uid uid) noexcept : uid_(uid) {}
    Uid uid_;
};

// Becomes `account` with exactly its groups, sets no_new_privs, clears dumpable, then checks every id and tries to regain root. Throws
// Failure if any id is wrong, and aborts the process if it could regain root (OpenSSH's rule).
AsUser become_user(AsRoot root, const Account &account);

// For one root thread, as long as this object lives: file systems see `account` (setfsuid(2)), also for what they reserve for root, and its
// capabilities stay. Throws Failure if that did not work.
void act_on_files_as(const AsRoot &root, const Account &account);

// --- Which namespace a process is in (namespaces(7)).
struct NamespaceId {
    dev_t device;
    ino_t inode;
    friend bool operator==(const NamespaceId &, const NamespaceId &) = default;
};

// `process`: a number, "self", or "1" for the host's. Empty if it cannot be seen, or if there is no such kind; errno says why.
inline std::optional<NamespaceId> namespace_of(const std::string &process, const std::string &kind)
{
    struct stat facts {};
    if (stat(("/proc/" + process + "/ns/" + kind).c_str(), &facts) != 0) return std::nullopt;
    return NamespaceId{facts.st_dev, facts.st_ino};
}

// The host's own of these kinds ("mnt", "pid", …): their inodes, as text. Throws SystemFailure if one cannot be seen.
std::map<std::string, std::string> host_namespaces(const std::vector<std::string> &kinds);

// --- Whether this process can recognize root's files. In a user namespace that somebody made for their shell, it cannot.

// A message, with what to do, if the host's root has no number here. Then our own program and every other file of root seem to belong to
// nobody. In a container with its own numbers, where root's programs belong to root, nothing is wrong.
std::optional<std::string> problem_of_user_namespace();

// --- The kernel's mount table: it only looks, and makes no mount call (runner/root/mount/mounts.hpp makes those).

// The id of a descriptor's mount (statx(2)), to compare with other current ones: the kernel uses ids again. Asks no file system.
std::uint64_t mount_id(FdRef fd);

// One line of /proc/self/mountinfo (proc(5)), unescaped.
struct MountEntry {
    std::uint64_t id;
    std::uint64_t parent;
    std::string point;
    std::string type;
    std::string source;
    std::string options; // of its file system
};

// Throws Failure(internal) for a line of another form.
MountEntry parse_mount(const std::string &line);

std::vector<MountEntry> list_mounts();

// A descriptor's mount; empty if it was unmounted meanwhile.
const MountEntry *mount_that_holds(const std::vector<MountEntry> &mounts, FdRef directory);

// " (TYPE mounted at POINT)" of that mount, for messages; empty if the descriptor has no mount.
std::string name_mount(const std::vector<MountEntry> &mounts, FdRef directory);

// The mount points below `path`, relative to it, sorted and unique, without those below another one.
std::vector<std::string> topmost_mounts_below(const std::vector<MountEntry> &mounts, const std::string &path);

// The processes that this one descends from, one by one, as the kernel tells them.

// One of them.
struct Ancestor {
    FdRef directory;  // its own in /proc: it never means another process
    std::string name; // as it says itself
    bool is_roots;    // by all of its user ids
    pid_t number = 0; // another process may have it once this one is gone
};

// Whether `is_it` accepts one of the ancestors, from the parent up. False where one of them ended meanwhile, because others adopt its
// children.
bool has_ancestor(const std::function<bool(const Ancestor &)> &is_it);

// A process of root's with the name of Slurm's for a job. It is what somebody who is not root can see of that.
constexpr const char *job_process = "slurmstepd";
bool looks_like_job(const Ancestor &ancestor);

} // namespace pi_agent
