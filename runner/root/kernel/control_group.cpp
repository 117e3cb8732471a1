// Control groups: where those of systemd's units are and what is in them, and those that a session makes of its own.
#include "runner/root/kernel/host_facts.hpp"

#include "common/host/beneath.hpp"
#include "runner/root/session/session_directory.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <linux/magic.h>
#include <sstream>
#include <sys/vfs.h>
#include <system_error>
#include <thread>

namespace pi_agent {

const char *const control_groups = "/sys/fs/cgroup";

namespace {

constexpr std::string_view named_hierarchy = "/sys/fs/cgroup/systemd";
constexpr std::string_view unified_hierarchy = "0::";
constexpr std::size_t groups_limit = 1000; // nobody makes so many: an engine makes one per session

// A line of /proc/PID/cgroup, "4:memory:/a/b", split into the hierarchy, "4:memory:", and the group, "/a/b".
std::pair<std::string, std::string> split_line(const std::string &line)
{
    const std::size_t path = std::min(line.find('/'), line.size());
    return {line.substr(0, path), line.substr(path)};
}

// "" where the file is gone, or its group is.
std::string read_control_file(const std::string &path)
{
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) require_gone("opening " + path, ENODEV);
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
        const ssize_t length = file ? read(file.get(), part.data(), part.size()) : 0;
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) require_gone("reading " + path, ENODEV);
        if (length <= 0) return text;
        text.append(part.data(), static_cast<std::size_t>(length));
    }
}

bool is_systemds_own(const std::string &hierarchy)
{
    return hierarchy == unified_hierarchy || hierarchy.ends_with(":name=systemd:");
}

ControlGroup group_at(bool unified, const std::string &place)
{
    return {std::string(unified ? std::string_view(control_groups) : named_hierarchy) + place, unified};
}

// --- Makes, enters and leaves a session's own groups, of version 2.

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
        const auto [hierarchy, group] = split_line(line);
        if (hierarchy == unified_hierarchy)
            require_not_owned(is_version_2() ? control_groups : std::string(control_groups) + "/unified", group, user);
        else if (hierarchy.ends_with(":freezer:"))
            require_not_owned(std::string(control_groups) + "/freezer", group, user);
    }
    if (groups.bad()) refuse_to_stay("/proc/self/cgroup cannot be read");
}

} // namespace

SystemdTops read_systemd_tops(std::istream &groups_of_init)
{
    constexpr std::string_view init = "/init.scope";
    SystemdTops tops;
    for (std::string line; std::getline(groups_of_init, line);) {
        const auto [hierarchy, group] = split_line(line);
        if (is_systemds_own(hierarchy) && group.ends_with(init)) tops[hierarchy] = group.substr(0, group.size() - init.size());
    }
    return tops;
}

SystemdTops read_systemd_tops()
{
    std::ifstream groups_of_init("/proc/1/cgroup");
    return read_systemd_tops(groups_of_init);
}

std::optional<ControlGroup> group_of_unit(const SystemdTops &tops, const std::string &place)
{
    for (const bool unified : {false, true})
        for (const auto &[hierarchy, top] : tops)
            if (unified == (hierarchy == unified_hierarchy)) return group_at(unified, top + place);
    return std::nullopt;
}

bool is_in_unit(std::istream &groups, const SystemdTops &tops, const std::string &place)
{
    const std::string unit = place.substr(place.rfind('/'));
    std::size_t inside = 0;
    for (std::string line; std::getline(groups, line);) {
        const auto [hierarchy, group] = split_line(line);
        if (!defence_is_on("scope-place") && group.ends_with(unit)) return true;
        if (const auto top = tops.find(hierarchy); top != tops.end() && group == top->second + place) ++inside;
    }
    return inside > 0 && inside == tops.size();
}

void wait_until_inside(const std::string &place, Deadline deadline)
{
    const SystemdTops tops = read_systemd_tops();
    while (defence_is_on("kernels-word")) {
        std::ifstream own("/proc/self/cgroup");
        if (is_in_unit(own, tops, place)) return;
        if (Clock::now() >= deadline)
            throw Failure(FailureKind::no_systemd,
                          "systemd did not move the runner into its scope; the administrator finds more with: journalctl -u " +
                              place.substr(place.rfind('/') + 1));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling)
{
    const std::string own = "/" + own_unit;
    for (std::string line; std::getline(groups, line);) {
        const auto [hierarchy, group] = split_line(line);
        if (!is_systemds_own(hierarchy) || !group.ends_with(own)) continue;
        return group_at(hierarchy == unified_hierarchy, group.substr(0, group.size() - own.size()) + "/" + sibling);
    }
    return std::nullopt;
}

ControlGroup group_beside_runner(const std::string &session_id, const std::string &unit)
{
    std::ifstream own("/proc/self/cgroup");
    const auto group = find_sibling_group(own, scope_name(session_id), unit);
    if (!group) throw Failure(ExitStatus::internal, "the runner is not in its scope");
    return *group;
}

std::string place_in_hierarchy(const ControlGroup &group)
{
    return group.path.substr(group.is_unified ? std::string_view(control_groups).size() : named_hierarchy.size());
}

std::string directory_of(const ControlGroup &group, const std::string &controller)
{
    return group.is_unified ? group.path : std::string(control_groups) + "/" + controller + place_in_hierarchy(group);
}

bool is_mounted_as(const std::string &path, unsigned long type)
{
    struct statfs facts {};
    if (statfs(path.c_str(), &facts) == 0) return static_cast<unsigned long>(facts.f_type) == type;
    require_gone("looking at what is mounted at " + path);
    return false;
}

void kill_group(const ControlGroup &group)
{
    std::ofstream kill_all(group.path + "/cgroup.kill");
    if (kill_all << "1" << std::flush) return;
    for (const pid_t pid : processes_in(group)) {
        const UniqueFd process = open_process(pid);
        const std::vector<pid_t> still = processes_in(group); // otherwise the number may be another process' by now
        if (process && std::find(still.begin(), still.end(), pid) != still.end()) signal_process(process, SIGKILL, "ending the session");
    }
}

void empty_group(const ControlGroup &group, Deadline deadline)
{
    while (!processes_in(group).empty()) {
        if (defence_is_on("cleanup-kills")) kill_group(group);
        if (Clock::now() >= deadline)
            throw Failure(ExitStatus::system_failure, "the session still has processes; its directory is left to the next sweep");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

std::vector<std::string> groups_in(const std::string &directory)
{
    std::vector<std::string> names;
    DirectoryStream entries(UniqueFd::adopt(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
    const dirent *entry = nullptr;
    while (entries && (entry = entries.next()) != nullptr)
        if (entry->d_type == DT_DIR) names.emplace_back(entry->d_name);
    if (!entries || errno != 0) require_gone("listing the control group " + directory, ENODEV);
    return names;
}

std::vector<std::string> groups_below(const std::string &directory)
{
    std::vector<std::string> groups = {directory};
    for (std::size_t index = 0; index < groups.size() && groups.size() < groups_limit; ++index)
        for (const auto &name : groups_in(groups[index]))
            groups.push_back(groups[index] + "/" + name);
    return groups;
}

std::vector<std::string> words_in(const std::string &path)
{
    std::ifstream file(path);
    return {std::istream_iterator<std::string>(file), {}};
}

std::optional<std::uint64_t> number_in(const std::vector<std::string> &words, std::size_t index)
{
    return index < words.size() ? to_number<std::uint64_t>(words[index]) : std::nullopt;
}

std::vector<pid_t> processes_in(const ControlGroup &group)
{
    std::vector<pid_t> pids;
    for (const auto &below : groups_below(group.path)) {
        std::istringstream numbers(read_control_file(below + "/cgroup.procs"));
        for (pid_t pid = 0; numbers >> pid;)
            pids.push_back(pid);
    }
    return pids;
}

void remove_empty_groups(const ControlGroup &group)
{
    const auto remove_at = [](const std::string &path) {
        const std::vector<std::string> groups = groups_below(path);
        for (auto one = groups.rbegin(); one != groups.rend(); ++one)
            rmdir(one->c_str()); // best_effort: it is gone, or not empty
    };
    if (group.is_unified) return remove_at(group.path);
    std::error_code problem;
    for (std::filesystem::directory_iterator entry(control_groups, problem), end; !problem && entry != end; entry.increment(problem))
        remove_at(entry->path().string() + place_in_hierarchy(group));
}

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
    remove_groups(session_id);
}

} // namespace pi_agent
