// Project quotas of a file system (quotactl(2)): whether the kernel enforces them, and the limit of one project, by descriptor.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

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

// The same for the places of a state directory that exist, and for the method. `policy` has limits.disk. The place of a user that is a
// mount of its own is looked at by their starts.
std::string problem_of_disk_limit(const Policy &policy);

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

} // namespace pi_agent
