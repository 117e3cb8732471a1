// Asks a file system for its project quotas, and sets the limit of one project.
#include "runner/root/session/disk_quota.hpp"

#include "common/base/files.hpp"
#include "common/host/trusted_file.hpp"

#include <linux/dqblk_xfs.h>
#include <linux/quota.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

// People, kubelet and container engines give out small numbers of projects. Small numbers of users, which are those of almost all hosts,
// are moved away from them, and directory services' are large enough. Where the former go, the latter go on at the end.
constexpr std::uint32_t first_large = 0x10000000;   // all numbers below may be other people's projects
constexpr std::uint32_t first_project = 0x50000000; // of the small numbers
constexpr std::uint32_t last_projects = 0xf0000000; // of users whose number is the project of a small one
constexpr std::size_t projects_limit = 1U << 20U;
constexpr std::uint64_t bytes_of_file = 4096; // what the smallest file with content takes

// By descriptor: a path to a device (quotactl(2)) would have to be looked for in the table of mounts.
long ask_quotas(FdRef directory, int command, std::uint32_t project, void *answer)
{
    return syscall(SYS_quotactl_fd, directory.get(), QCMD(command, PRJQUOTA), project, answer);
}

bool set_limit(FdRef directory, const DiskQuota &quota)
{
    if_dqblk limit{};
    limit.dqb_bhardlimit = limit.dqb_bsoftlimit = (quota.bytes + QIF_DQBLKSIZE - 1) / QIF_DQBLKSIZE;
    limit.dqb_ihardlimit = limit.dqb_isoftlimit = quota.bytes / bytes_of_file;
    limit.dqb_valid = QIF_LIMITS;
    return ask_quotas(directory, Q_SETQUOTA, quota.project, &limit) == 0;
}

// Under the name of each of these another part of the state may be mounted.
constexpr std::array parts_of_state = {"", "/users", "/sessions"};

} // namespace

std::optional<std::uint32_t> project_of_agent(Uid user) noexcept
{
    const std::uint32_t number = user.value();
    const std::uint32_t project = number < first_large           ? first_project + number
                                  : is_project_of_agents(number) ? last_projects + (number - first_project)
                                                                 : number;
    return number < last_projects && project != UINT32_MAX ? std::optional(project) : std::nullopt;
}

std::uint32_t former_project_of_agent(Uid user) noexcept
{
    return user.value() ^ first_project;
}

bool is_project_of_agents(std::uint32_t project) noexcept
{
    return project >> 28U == first_project >> 28U;
}

std::string problem_of_quotas(FdRef directory)
{
    fs_quota_stat state{};
    if (ask_quotas(directory, Q_XGETQSTAT, 0, &state) != 0) {
        // As a file system without quotas answers, one without those of projects, and a kernel before 5.14.
        if (errno == ENOSYS || errno == EINVAL || errno == ESRCH) return "its file system has no project quotas";
        return SystemFailure(errno, "asking its file system for quotas").what();
    }
    if ((state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0) return "";
    return (state.qs_flags & FS_QUOTA_PDQ_ACCT) != 0 ? "its file system counts for project quotas and does not enforce them"
                                                     : "its file system has no project quotas";
}

// One that these files name is an administrator's (projid(5), projects(5)).
std::string problem_of_number(const AsRoot & /*root*/, std::uint32_t project)
{
    struct Table {
        const char *path;
        std::size_t column;
    };
    for (const auto &[path, column] : {Table{"/etc/projid", 1}, Table{"/etc/projects", 0}}) {
        const std::string file = path;
        const auto text = if_there([&] { return read_trusted_file(file, projects_limit, "list of projects"); });
        for (const auto line : split(text, '\n')) {
            const auto fields = split(line, ':');
            if (fields.size() > column && to_number<std::uint32_t>(fields[column]) == project)
                return "the project " + std::to_string(project) + ", which its agent has, is another's in " + file +
                       "; give that one a smaller number";
        }
    }
    return "";
}

std::string problem_of_method(SandboxMethod method)
{
    if (method != SandboxMethod::none) return "";
    return "under sandbox.method none nothing keeps an agent from taking its files out of the quota; choose another method";
}

std::string problem_of_disk_limit(const Policy &policy)
{
    if (auto problem = problem_of_method(policy.sandbox.method); !problem.empty()) return problem;
    for (const char *part : parts_of_state) {
        const std::string path = policy.agent.state_dir + part;
        const UniqueFd place = open_if_there("opening " + path, FdRef(AT_FDCWD), path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
        if (!place) continue; // nothing was applied yet, or nobody started
        const std::string problem = problem_of_quotas(place);
        if (!problem.empty()) return path + ": " + problem + "; " + quota_remedy;
    }
    return "";
}

void set_disk_limit(const AsRoot & /*root*/, FdRef directory, const DiskQuota &quota, const std::string &path)
{
    if (!set_limit(directory, quota)) throw_errno("setting the disk quota of " + path);
}

void lift_disk_limit(const AsRoot & /*root*/, FdRef directory, std::uint32_t project, const std::string &path)
{
    if (!problem_of_quotas(directory).empty()) return; // nobody enforces one
    if (!set_limit(directory, {project, 0})) throw_errno("lifting the disk quota of " + path);
}

std::optional<DiskUse> disk_use(const AsRoot & /*root*/, FdRef directory, std::uint32_t project)
{
    if_dqblk use{};
    if (ask_quotas(directory, Q_GETQUOTA, project, &use) != 0) return std::nullopt; // XFS knows no project without files
    return DiskUse{use.dqb_curspace, use.dqb_bhardlimit * QIF_DQBLKSIZE};
}

} // namespace pi_agent
