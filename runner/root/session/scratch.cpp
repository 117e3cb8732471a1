// The temporary directories of one session, and the project quotas that hold them.

#include "common/host/beneath.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <linux/dqblk_xfs.h>
#include <linux/quota.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

namespace pi_agent {

namespace {

constexpr const char *cache_work_end = "-work";
constexpr unsigned long long nearly_nothing = 16ULL << 20U; // bytes

UniqueFd make_directory(FdRef parent, const std::string &name, const std::string &path)
{
    // The directory must be new: one that already exists belongs to somebody else.
    const bool fixed = !defence_is_on("unique-scratch");
    if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && !(fixed && errno == EEXIST)) throw_errno("creating " + path);
    return open_or_throw("opening " + path, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

void give_away(FdRef directory, const Account &agent, const std::string &path)
{
    if (fchown(directory.get(), agent.uid.value(), agent.gid.value()) != 0) throw_errno("giving " + path + " to the agent");
}

// Until root gives a directory away, only root can reach what is in it.
void fill(FdRef top, const Account &agent, const std::string &path)
{
    for (const std::string name : {"tmp", "var-tmp"})
        give_away(make_directory(top, name, path + "/" + name), agent, path + "/" + name);
    // Anybody who could enter would find files of the agent's that run as the agent (setuid), outside every sandbox. Sessions get these
    // directories by mounts.
    const mode_t mode = defence_is_on("closed-scratch") ? 0700 : 0711;
    if (fchmodat(top.get(), ".", mode, 0) != 0) throw_errno("setting the mode of " + path);
}

// Root may use the space that a file system reserves for it; the agent may not.
void require_space(FdRef top, const std::string &path)
{
    struct statvfs facts {};
    if (fstatvfs(top.get(), &facts) != 0) throw_errno("examining " + path);
    if (facts.f_bavail > 0 && (facts.f_files == 0 || facts.f_favail > 0)) return;
    throw SystemFailure(ENOSPC, "making the session's temporary directory " + path);
}

UniqueFd make_on_disk(const AsRoot &root, const SessionDirectory &session, const std::string &state_dir, const std::string &id,
                      const Account &agent, const std::optional<DiskQuota> &quota)
{
    const std::string scratch_path = state_dir + "/" + scratch_parent;
    const std::string name = defence_is_on("unique-scratch") ? id : "fixed";
    const UniqueFd parent = open_scratch_parent(root, state_dir);
    session.make_link(scratch_link, scratch_path + "/" + name);
    UniqueFd top = make_directory(parent, name, scratch_path + "/" + name);
    // This lock shows that the session lives, and ends with the runner: no sweep removes the directory while it is held, whatever it finds
    // elsewhere.
    if (defence_is_on("scratch-lock") && flock(top.get(), LOCK_SH | LOCK_NB) != 0) throw_errno("locking " + scratch_path + "/" + name);
    require_space(top, scratch_path); // of the file system: a session whose quota is used up starts, so that its user can remove something
    if (quota) {
        join_project(top, quota->project, "the session's temporary directory");
        set_disk_limit(root, top, *quota, scratch_path);
    }
    fill(top, agent, scratch_path + "/" + name);
    return top;
}

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

} // namespace

// --- Makes a session's temporary directories, by descriptor, below directories that only root can write.

UniqueFd open_scratch_parent(const AsRoot & /*root*/, const std::string &state_dir)
{
    const std::string path = state_dir + "/" + scratch_parent;
    const UniqueFd state = open_trusted(state_dir, O_RDONLY | O_DIRECTORY, "state directory");
    UniqueFd parent = ensure_state_directory(state, scratch_parent, defence_is_on("closed-scratch") ? 0700 : 0711, 0, 0, path);
    require_own_file_system(parent, path, "agent.state_dir");
    return parent;
}

UniqueFd make_scratch(const AsRoot &root, const SessionDirectory &session, ScratchKind kind, const std::string &state_dir,
                      const std::string &id, const Account &agent, const std::optional<DiskQuota> &quota)
{
    const UniqueFd at = session.make_directory("scratch");
    if (kind == ScratchKind::tmpfs) {
        DetachedMount memory = new_filesystem(
            root, "tmpfs", {{"source", "pi-agent-scratch"}, {"mode", "0700"}, {"size", scratch_memory_share}, {"nr_inodes", "1000000"}},
            false, Execution::allowed);
        fill(memory.fd, agent, "the session's temporary directory");
        attach(root, memory, at);
        return std::move(memory.fd);
    }
    try {
        UniqueFd top = make_on_disk(root, session, state_dir, id, agent, quota);
        attach(root, clone_mount(root, top, Submounts::leave_out, MountAttributes{}), at);
        return top;
    } catch (const SystemFailure &failure) {
        if (failure.error_number() != ENOSPC && failure.error_number() != EDQUOT) throw;
        throw Failure(FailureKind::disk,
                      "the disk is full: " + std::string(failure.what()) +
                          ", who can also keep temporary directories in memory (scratch: tmpfs)"); // after "or ask the administrator"
    }
}

void release_scratch(FdRef scratch) noexcept
{
    flock(scratch.get(), LOCK_UN); // best_effort: it ends with this process
}

CacheLayer make_cache_layer(FdRef scratch, std::size_t number, const Account &agent, const std::vector<std::string> &masked)
{
    CacheLayer layer{"cache" + std::to_string(number), "cache" + std::to_string(number) + cache_work_end};
    const UniqueFd upper = make_directory(scratch, layer.upper, layer.upper);
    for (const auto &name : masked)
        if (defence_is_on("masked-names") && mknodat(upper.get(), name.c_str(), S_IFCHR, makedev(0, 0)) != 0)
            throw_errno("hiding " + name + " of a cache");
    give_away(upper, agent, layer.upper);
    make_directory(scratch, layer.work, layer.work);
    return layer;
}

bool is_cache_work(const std::string &name) noexcept
{
    return name.ends_with(cache_work_end) && name != cache_work_end;
}

std::optional<std::string> nearly_full(FdRef directory, const std::string &what)
{
    struct statvfs facts {};
    if (fstatvfs(directory.get(), &facts) != 0) return std::nullopt; // best_effort: a courtesy
    const auto left = static_cast<unsigned long long>(facts.f_bavail) * facts.f_frsize;
    if (left >= nearly_nothing && (facts.f_files == 0 || facts.f_favail > 0)) return std::nullopt;
    const std::string what_is_left = left < nearly_nothing ? std::to_string(left >> 10U) + " KiB left" : "no inode left for another file";
    return "nearly full: the file system of " + what + " has " + what_is_left +
           ", so the agent's work may have failed for want of space; free some, or ask the administrator";
}

// Records which session uses which placeholder in a project: a session of the same repository takes an existing one for its own.

UniqueFd lock_placeholders(Uid user, Deadline deadline)
{
    const UniqueFd parent = open_runtime_directory();
    const std::string name = "placeholders-" + std::to_string(user.value());
    UniqueFd lock = open_or_throw("opening the lock of placeholders", parent, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    return lock_until(lock, deadline, "the placeholders") ? std::move(lock) : UniqueFd();
}

std::set<std::string> placeholders_of_others(const std::string &id)
{
    std::set<std::string> paths;
    const UniqueFd sessions = open_sessions();
    for (const auto &name : names_in(sessions)) {
        const UniqueFd session = is_session_id(name) && name != id ? try_open_session(sessions, name) : UniqueFd();
        if (!session) continue;
        for (auto &path : recorded_placeholders(session))
            paths.insert(std::move(path));
    }
    return paths;
}

std::vector<std::string> recorded_placeholders(FdRef session)
{
    const UniqueFd records = find_beneath(session, placeholders_directory, O_RDONLY | O_DIRECTORY);
    if (!records) return {};
    std::vector<std::string> paths;
    for (;;) {
        std::string path = read_session_link(records, std::to_string(paths.size()).c_str());
        if (path.empty()) return paths;
        paths.push_back(std::move(path));
    }
}

// --- Asks a file system for its project quotas, and sets the limit of one project.

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
    for (const auto &[file, column] : {std::pair<std::string, std::size_t>("/etc/projid", 1), {"/etc/projects", 0}}) {
        const auto text = if_there([&, &path = file] { return read_trusted_file(path, projects_limit, "list of projects"); });
        for (const auto line : split(text, '\n')) {
            if (const auto fields = split(line, ':'); fields.size() > column && to_number<std::uint32_t>(fields[column]) == project)
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

void set_disk_limit(const AsRoot & /*root*/, FdRef directory, const DiskQuota &quota, const std::string &path)
{
    if_dqblk limit{};
    limit.dqb_bhardlimit = limit.dqb_bsoftlimit = (quota.bytes + QIF_DQBLKSIZE - 1) / QIF_DQBLKSIZE;
    limit.dqb_ihardlimit = limit.dqb_isoftlimit = quota.bytes / bytes_of_file;
    limit.dqb_valid = QIF_LIMITS;
    if (ask_quotas(directory, Q_SETQUOTA, quota.project, &limit) != 0)
        throw_errno((quota.bytes > 0 ? "setting the disk quota of " : "lifting the disk quota of ") + path);
}

void lift_disk_limit(const AsRoot &root, FdRef directory, std::uint32_t project, const std::string &path)
{
    if (problem_of_quotas(directory).empty()) set_disk_limit(root, directory, {project, 0}, path); // otherwise nobody enforces one
}

std::optional<DiskUse> disk_use(const AsRoot & /*root*/, FdRef directory, std::uint32_t project)
{
    if_dqblk use{};
    if (ask_quotas(directory, Q_GETQUOTA, project, &use) != 0) return std::nullopt; // XFS knows no project without files
    return DiskUse{use.dqb_curspace, use.dqb_bhardlimit * QIF_DQBLKSIZE};
}

} // namespace pi_agent
