// Moving into a scope, and never leaving half a move.
#include "runner/own_scope.hpp"

#include "common/defence.hpp"
#include "runner/process_state.hpp"
#include "runner/unit_properties.hpp"

#include <exception>
#include <utility>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 30;

} // namespace

MoveIntoScope::MoveIntoScope(SystemdBus &systemd, const std::string &scope, Uid user)
{
    if (!defence_is_on("own-scope")) return;
    systemd.request_scope(scope, scope_properties(user));
    under_way_ = scope;
}

void MoveIntoScope::wait()
{
    const std::string scope = std::exchange(under_way_, "");
    if (!scope.empty()) wait_until_inside(scope, in_seconds(patience_seconds));
}

MoveIntoScope::~MoveIntoScope()
{
    try {
        wait();
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): what came before it is told
    }
}

} // namespace pi_agent
