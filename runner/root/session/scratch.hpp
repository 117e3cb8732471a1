// The temporary directories of one session, and the project quotas that hold them.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/root/session/session_directory.hpp"

namespace pi_agent {

// --- Project quotas of a file system (quotactl(2)): whether the kernel enforces them, and the limit of one project, by descriptor.

// What holds the agent of one user on a file system: all files of a project count together.
struct DiskQuota {
    std::uint32_t project = 0;
    std::uint64_t bytes = 0;
};

// What an administrator does about a file system without them.
constexpr const char *quota_remedy =
    "mount an ext4 (with the features 'project' and 'quota') or an XFS there, with the option 'prjquota' (docs/concepts/disk.md)";

// The project of a user's agent: one number for each user, never one below 2^28, which people, kubelet and container engines give out.
// None for the few users whom none is left for: from the number 0xf0000000 on, and one more.
std::optional<std::uint32_t> project_of_agent(Uid user) noexcept;
// The number that an earlier version gave, which for large numbers of users may be an administrator's.
std::uint32_t former_project_of_agent(Uid user) noexcept;
// Why the project cannot be an agent's, in words; empty if it can.
std::string problem_of_number(const AsRoot &root, std::uint32_t project);
// Whether it looks like one of these, of whatever user.
bool is_project_of_agents(std::uint32_t project) noexcept;

// Why the kernel holds nobody to a project quota on the file system of `directory`, in words; empty if it does. Any account may ask.
std::string problem_of_quotas(FdRef directory);

// Why no quota can hold agents under this method; empty if one can.
std::string problem_of_method(SandboxMethod method);

// Sets the limit of a project on the file system of `directory`; 0 bytes lift it. `path` is for messages. As many files fit as the
// bytes have blocks of 4 KiB, for a file without content takes none.
void set_disk_limit(const AsRoot &root, FdRef directory, const DiskQuota &quota, const std::string &path);

// The same with no limit, where there may be no quotas any more.
void lift_disk_limit(const AsRoot &root, FdRef directory, std::uint32_t project, const std::string &path);

// What the project has on that file system now. None if the kernel does not say.
struct DiskUse {
    std::uint64_t bytes = 0;
    std::uint64_t limit = 0; // 0: none
};
std::optional<DiskUse> disk_use(const AsRoot &root, FdRef directory, std::uint32_t project);

// --- The temporary directories of one session: /tmp and /var/tmp of its view.

// Below the state directory, root's own: holds a directory for each session, named by its id.
constexpr const char *scratch_parent = "sessions";
constexpr const char *scratch_link = "on-disk"; // in the session's directory; leads nowhere: its text is the path to remove

// Makes the temporary directories and mounts them at `scratch` in the session's directory, as "tmp" and "var-tmp". On disk they are in
// STATE_DIR/sessions/ID. The session's directory records that path first, so that the removal finds it. Returns the directory that holds
// both, locked until release_scratch() or the end of this process. On disk they join the project of `quota`, if there is one. Throws
// Failure(system_failure) in words when nothing fits on the file system any more.
UniqueFd make_scratch(const AsRoot &root, const SessionDirectory &session, ScratchKind kind, const std::string &state_dir,
                      const std::string &id, const Account &agent, const std::optional<DiskQuota> &quota = std::nullopt);
// STATE_DIR/sessions, made if need be.
UniqueFd open_scratch_parent(const AsRoot &root, const std::string &state_dir);
// Call it when no process of the session runs any more: a process that removes what it left need not wait for this one.
void release_scratch(FdRef scratch) noexcept;

// The two directories of an overlay's changes in what make_scratch returned, by name: the agent owns `upper`, and root owns `work`. Only
// root reaches them, by any path. The overlay shows none of the `masked` names, whatever is below it: each is a whiteout.
struct CacheLayer {
    std::string upper;
    std::string work;
};
CacheLayer make_cache_layer(FdRef scratch, std::size_t number, const Account &agent, const std::vector<std::string> &masked);

// True for the name of a `work` directory, which holds the kernel's own "work"; the agent owns the session's other directories.
bool is_cache_work(const std::string &name) noexcept;

// What to tell the user when the file system behind `directory` is nearly full; `what` names what is stored there.
std::optional<std::string> nearly_full(FdRef directory, const std::string &what);

} // namespace pi_agent
