// Root's own files and directories: read, replaced in one step, and locked.
#include "admin/host/root_files.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

namespace pi_agent {

namespace {

void sync_directory(FdRef directory, const std::string &path)
{
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + path + " to disk");
}

void set_owner_and_mode(FdRef directory, const std::string &path, mode_t mode)
{
    if (::fchown(directory.get(), 0, 0) != 0 || ::fchmod(directory.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
}

UniqueFd open_below(FdRef parent, const std::string &name)
{
    return open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

UniqueFd take(const std::string &path, const std::string &held)
{
    UniqueFd lock = open_or_throw("cannot open " + path, FdRef(AT_FDCWD), path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
        spdlog::debug("locked {}", path);
        return lock;
    }
    if (errno == EWOULDBLOCK) throw Failure(FailureKind::busy, held);
    throw_errno("cannot lock " + path);
}

void check_present(FdRef directory, const std::string &path, mode_t mode, Changes &changes)
{
    const struct stat status = examine(directory, "cannot examine " + path);
    if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        // Whoever could write here may have left something, and taking it over would make that trusted.
        throw Failure(
            FailureKind::untrusted,
            fmt::format(
                "{} belongs to uid {} with mode {:04o}, so others than root can write to it; move it away and run the command again", path,
                status.st_uid, status.st_mode & 07777U));
    }
    if (status.st_gid == 0 && (status.st_mode & 07777U) == mode) return;
    changes.make(fmt::format("set the directory {} to root:root {:04o}", path, mode), [&] { set_owner_and_mode(directory, path, mode); });
}

} // namespace

void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    const auto fd = open_or_throw("cannot create " + path, directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400);
    try {
        write_whole(fd, text, path);
        if (::fchown(fd.get(), 0, 0) != 0 || ::fchmod(fd.get(), mode) != 0) throw_errno("cannot set owner and mode of " + path);
        if (::fsync(fd.get()) != 0) throw_errno("cannot write " + path + " to disk");
    } catch (const std::exception &) {
        ::unlinkat(directory.get(), name.c_str(), 0); // best_effort: half a file is useless, and the failure is reported
        throw;
    }
}

void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path)
{
    if (::renameat(directory.get(), name.c_str(), directory.get(), final_name.c_str()) != 0) throw_errno("cannot install " + path);
    sync_directory(directory, path);
    spdlog::debug("wrote {}", path);
}

void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path)
{
    write_beside(directory, name + ".new", text, mode, path + ".new");
    move_into_place(directory, name + ".new", name, path);
}

void remove_root_file(FdRef directory, const std::string &name, const std::string &path)
{
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("cannot remove " + path);
    sync_directory(directory, path);
    spdlog::debug("removed {}", path);
}

void make_state_directories(const AsRoot &root, const Policy &policy, Changes &changes)
{
    const auto &state = policy.agent.state_dir;
    make_root_directory(root, state, 0711, changes);
    make_root_directory(root, state + "/users", 0711, changes);
    make_root_directory(root, state + "/sessions", 0700, changes);
}

void make_root_directory(const AsRoot & /*root*/, const std::string &path, mode_t mode, Changes &changes)
{
    const auto name = path.substr(path.rfind('/') + 1);
    const auto order = fmt::format("create the directory {} (root {:04o})", path, mode);
    const auto open_parent = [&] { return open_trusted(parent_of(path), O_PATH | O_DIRECTORY, "state directory"); };
    const auto parent = changes.dry_run() ? if_there(open_parent) : open_parent();
    if (!parent) return changes.make(order, [] {});
    if (const auto directory = open_below(parent, name)) return check_present(directory, path, mode, changes);
    if (errno == ENOTDIR || errno == ELOOP)
        throw Failure(ExitStatus::configuration, path + " is a symlink or not a directory; move it away");
    if (errno != ENOENT) throw_errno("cannot open the directory " + path);
    changes.make(order, [&] {
        if (::mkdirat(parent.get(), name.c_str(), 0700) != 0) throw_errno("cannot create " + path);
        const auto directory = open_below(parent, name);
        if (!directory) throw_errno("cannot open " + path);
        set_owner_and_mode(directory, path, mode);
    });
}

UniqueFd take_apply_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl.lock", "another 'pi-agentctl apply' is running; wait for it");
}

UniqueFd take_edit_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-edit.lock", "somebody is editing the policy: another 'pi-agentctl edit' is running; wait for it");
}

UniqueFd take_agents_lock(const AsRoot & /*root*/)
{
    return take("/run/pi-agentctl-agents.lock", "another 'pi-agentctl install-agent' is running; wait for it");
}

} // namespace pi_agent
