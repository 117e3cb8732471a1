// Moving into a scope, and never leaving half a move.
#include "runner/root/method/own_scope.hpp"

#include "common/base/absence.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/defence.hpp"
#include "runner/plan/unit_properties.hpp"
#include "runner/root/door/process_state.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"

#include <cerrno>
#include <exception>
#include <fcntl.h>
#include <utility>
#include <vector>

namespace pi_agent {

namespace {

constexpr int scope_patience_seconds = 30;
constexpr int unanswered_patience_seconds = 1;
constexpr std::size_t scopes_at_once = 64;

// The groups below one; none where it has just gone.
std::vector<std::string> groups_in(const std::string &path)
{
    const UniqueFd directory = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) require_gone("looking at the control group " + path, ENODEV);
    return directory ? names_in(directory) : std::vector<std::string>();
}

// For while something else has failed, which is what is told.
void wait_quietly(const std::string &place, int seconds) noexcept
{
    try {
        wait_until_inside(place, in_seconds(seconds));
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): what came before it is told
    }
}

} // namespace

MoveIntoScope::MoveIntoScope(SystemdBus &systemd, const std::string &scope, Uid user)
{
    if (!defence_is_on("own-scope")) return;
    const std::string place = place_in_slice(user, scope);
    try {
        systemd.request_scope(scope, scope_properties(user));
    } catch (const std::exception &) { // the answer may be what failed, and systemd at work
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
            // systemd makes a group and moves a process there in one go: once it has answered, nobody is on the way.
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
        record_problem(session_id, std::string("empty scopes cannot be removed: ") + failure.what());
    }
}

} // namespace pi_agent
