// Makes a session's temporary directories by descriptor, and records which session uses which placeholder.
#include "runner/root/session/scratch.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/state_directory.hpp"

#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

namespace pi_agent {

// Making a session's temporary directories, by descriptor, below directories that only root can write.

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
void fill(FdRef top, const std::string &id, const Account &agent, const std::string &path)
{
    const UniqueFd tmp = make_directory(top, "tmp", path + "/tmp");
    give_away(make_directory(tmp, tmpdir_of(id).substr(5), path + "/tmp"), agent, path + "/tmp");
    give_away(tmp, agent, path + "/tmp");
    give_away(make_directory(top, "var-tmp", path + "/var-tmp"), agent, path + "/var-tmp");
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
    fill(top, id, agent, scratch_path + "/" + name);
    return top;
}

} // namespace

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
        fill(memory.fd, id, agent, "the session's temporary directory");
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
                          "; ask the administrator to free space, or to keep temporary directories in memory (scratch: tmpfs)");
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
    return "nearly full: the file system of " + what + " has " + std::to_string(left >> 10U) +
           " KiB left, so the agent's work may have failed for want of space; free some, or ask the administrator";
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

} // namespace pi_agent
