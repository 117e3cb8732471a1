// Makes, enters and leaves control groups of version 2.
#include "runner/root/kernel/own_group.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/session_directory.hpp"

#include <fstream>
#include <linux/magic.h>

namespace pi_agent {

namespace {

constexpr const char *leaving = "/sys/fs/cgroup/pi-agent/leaving"; // for processes that remove the group in which they were

std::string group_of(const std::string &session_id)
{
    return std::string(own_groups) + "/" + session_id;
}

bool is_version_2()
{
    return is_mounted_as(control_groups, CGROUP2_SUPER_MAGIC);
}

ControlGroup agents_of(const std::string &session_id)
{
    return {group_of(session_id) + "/agent", true};
}

UniqueFd open_group(const char *path)
{
    return UniqueFd::adopt(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool make_group(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

void remove_groups(const std::string &session_id)
{
    for (const char *name : {"/agent", "/runner", ""})
        rmdir((group_of(session_id) + name).c_str());
}

// Removes groups of killed runners. The runner of a live session is in its group, which therefore cannot be removed.
void sweep_groups()
{
    for (const auto &name : groups_in(own_groups)) {
        if (!is_session_id(name)) continue;
        if (rmdir((group_of(name) + "/runner").c_str()) == 0 || errno == ENOENT) remove_groups(name);
    }
}

[[noreturn]] void refuse_to_stay(const std::string &why)
{
    throw Failure(FailureKind::sandbox_method,
                  "the runner cannot leave the caller's control group for one of its own below " + std::string(control_groups) + ": " +
                      why + "; give this container a hierarchy that only root can write, or delegate no groups to users");
}

// Whoever may write to a group, or to one above it, may freeze or move its processes.
void require_not_owned(const std::string &mount, std::string group, Uid user)
{
    struct stat facts {};
    if (!path_exists(mount)) return; // no group that anybody could write
    for (;; group.resize(group.rfind('/'))) {
        if (stat((mount + group + "/cgroup.procs").c_str(), &facts) != 0)
            refuse_to_stay(SystemFailure(errno, "looking at the group " + group).what());
        if (facts.st_uid == user.value()) refuse_to_stay("the group " + group + " belongs to the caller, who could freeze it");
        if (group.empty() || group == "/") return;
    }
}

// The groups in which the caller's sudo left this process: of version 2, and the one of version 1 that freezes (`cgroups(7)`).
void require_groups_of_others(Uid user)
{
    std::ifstream groups("/proc/self/cgroup");
    if (!groups) refuse_to_stay("/proc/self/cgroup cannot be opened");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string group = line.substr(second + 1);
        if (controllers.empty())
            require_not_owned(is_version_2() ? control_groups : std::string(control_groups) + "/unified", group, user);
        else if (controllers == "freezer")
            require_not_owned(std::string(control_groups) + "/freezer", group, user);
    }
    if (groups.bad()) refuse_to_stay("/proc/self/cgroup cannot be read");
}

} // namespace

bool make_own_groups()
{
    return is_version_2() && make_group(own_groups);
}

OwnGroup::OwnGroup(const AsRoot & /*root*/, std::string session_id, Uid user) : id_(std::move(session_id))
{
    if (!defence_is_on("own-group")) return;
    // A user who controls this container's groups may have made it first.
    if (make_own_groups() && defence_is_on("top-group-owner")) require_not_owned(control_groups, "/pi-agent", user);
    constexpr int rounds = 10; // another start may sweep a group that nobody has entered yet
    for (int round = 0; make_own_groups() && round < rounds; ++round) {
        sweep_groups();
        const std::string path = group_of(id_);
        const std::string agents = path + "/agent";
        const std::string runner = path + "/runner";
        // The runner's group first: once a process is in it, no sweep takes the groups beside it.
        if (!make_group(path.c_str()) || !make_group(runner.c_str())) continue;
        const UniqueFd own = open_group(runner.c_str());
        if (!own || enter_group(own) != 0 || !make_group(agents.c_str())) continue;
        agents_ = open_group(agents.c_str());
        if (agents_ && faccessat(agents_.get(), "cgroup.procs", W_OK, 0) == 0) return;
    }
    agents_.reset();
    require_groups_of_others(user);
}

OwnGroup::~OwnGroup()
{
    if (!agents_) return;
    agents_.reset();
    leave_group(id_);
}

std::optional<ControlGroup> OwnGroup::group() const
{
    return agents_ ? std::optional(agents_of(id_)) : std::nullopt;
}

std::optional<ControlGroup> find_own_group(const std::string &session_id)
{
    auto group = agents_of(session_id);
    if (!path_exists(group.path)) return std::nullopt;
    return group;
}

int enter_group(FdRef group) noexcept
{
    const UniqueFd file = open_at(group, "cgroup.procs", O_WRONLY);
    return file && write(file.get(), "0", 1) == 1 ? 0 : errno;
}

void step_aside() noexcept
{
    if (access(own_groups, F_OK) != 0 || !make_group(leaving)) return;
    const UniqueFd group = open_group(leaving);
    if (group) enter_group(group);
}

void leave_group(const std::string &session_id) noexcept
{
    step_aside();
    try {
        remove_groups(session_id);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort
    }
}

} // namespace pi_agent
