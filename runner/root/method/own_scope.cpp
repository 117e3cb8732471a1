// The runner's own scope; the limits of a group that we make; and what a session uses.
#include "runner/root/method/own_scope.hpp"

#include "common/base/files.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/kernel/enforcement.hpp"
#include "runner/root/method/own_group.hpp"
#include "runner/root/session/record.hpp"

#include <fstream>

namespace pi_agent {

namespace {

constexpr int scope_patience_seconds = 30;
constexpr int unanswered_patience_seconds = 1;
constexpr std::size_t scopes_at_once = 64;

// For use while another failure is under way: the user hears of that one.
void wait_quietly(const std::string &place, int seconds) noexcept
{
    try {
        wait_until_inside(place, in_seconds(seconds));
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the earlier failure is reported
    }
}

constexpr std::uint64_t cpu_period_usec = 100'000;

void write_to(const std::string &file, const std::string &text)
{
    std::ofstream(file) << text << std::flush;
}

// The runner's number may belong to another process by now, but that one is not in the session's scope.
std::optional<ControlGroup> group_of_session(const std::string &session_id, pid_t runner)
{
    std::ifstream groups("/proc/" + std::to_string(runner) + "/cgroup");
    if (auto group = find_sibling_group(groups, scope_name(session_id), service_name(session_id))) return group;
    return find_own_group(session_id);
}

} // namespace

MoveIntoScope::MoveIntoScope(SystemdBus &systemd, const std::string &scope, Uid user)
{
    if (!defence_is_on("own-scope")) return;
    const std::string place = place_in_slice(user, scope);
    try {
        systemd.request_scope(scope, scope_properties(user));
    } catch (const std::exception &) { // the answer may be what failed, while systemd is at work
        wait_quietly(place, unanswered_patience_seconds);
        throw;
    }
    under_way_ = place;
}

void MoveIntoScope::wait()
{
    const std::string place = std::exchange(under_way_, "");
    if (!place.empty()) wait_until_inside(place, in_seconds(scope_patience_seconds));
}

MoveIntoScope::~MoveIntoScope()
{
    if (!under_way_.empty()) wait_quietly(under_way_, scope_patience_seconds);
}

std::vector<std::string> find_empty_scopes(SystemdBus &systemd)
{
    std::vector<std::string> found;
    const auto slices = group_of_unit(read_systemd_tops(), slices_place);
    if (!slices || !defence_is_on("own-scope") || !defence_is_on("sweep-scopes")) return found;
    for (const auto &slice : groups_in(slices->path)) {
        if (!slice.starts_with(user_slice_prefix)) continue;
        const std::string path = slices->path + "/" + slice + "/";
        for (const auto &scope : groups_in(path)) {
            if (!session_of_scope(scope)) continue;
            const auto is_empty = [&] { return processes_in({path + scope, slices->is_unified}).empty(); };
            // systemd makes a group and moves a process into it in one step: once it has answered, no process is on its way.
            if (is_empty() && systemd.unit_exists(scope) && is_empty()) found.push_back(scope);
            if (found.size() == scopes_at_once) return found;
        }
    }
    return found;
}

void sweep_empty_scopes(SystemdBus &systemd, const std::string &session_id) noexcept
{
    try {
        for (const auto &scope : find_empty_scopes(systemd))
            systemd.stop_unit(scope);
    } catch (const std::exception &failure) { // one user's leftover must not be another's refusal
        record_problem(session_id, "empty scopes cannot be removed: ", failure.what());
    }
}

void limit_group(const AsRoot & /*root*/, const std::string &group, const LimitsPolicy &limits)
{
    // One at a time: a write of several is refused when one of them is missing.
    for (std::size_t slash = std::string(control_groups).size(); slash != std::string::npos; slash = group.find('/', slash + 1))
        for (const char *controller : {"+memory", "+pids", "+cpu"})
            write_to(group.substr(0, slash) + "/cgroup.subtree_control", controller);
    write_to(group + "/memory.max",
             std::to_string(limits.memory ? limits.memory->amount : host_memory() / 100 * in_force(limits, &LimitsPolicy::memory_share)));
    if (limits.memory || limits.memory_share) write_to(group + "/memory.swap.max", "0"); // as of a unit: runner/plan/unit_properties.cpp
    write_to(group + "/pids.max", std::to_string(in_force(limits, &LimitsPolicy::tasks)));
    if (limits.cpu)
        write_to(group + "/cpu.max", std::to_string(limits.cpu->amount * (cpu_period_usec / 100)) + " " + std::to_string(cpu_period_usec));
}

SessionUsage usage_of_session(const std::string &session_id, pid_t runner)
{
    const auto group = group_of_session(session_id, runner);
    if (!group || !path_exists(group->path)) return {};
    SessionUsage usage;
    usage.processes = processes_in(*group).size();
    usage.memory = number_in(words_in(directory_of(*group, "memory") + (group->is_unified ? "/memory.current" : "/memory.usage_in_bytes")));
    usage.cpu_usec = usage_of(*group).cpu_usec;
    return usage;
}

} // namespace pi_agent
