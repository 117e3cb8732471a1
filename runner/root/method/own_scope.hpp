// The runner's way out of its caller's control group.
#pragma once

#include "common/base/ids.hpp"
#include "runner/root/method/systemd_bus.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Asks systemd to move this process into a scope of its own, and lets it do other things meanwhile. A process that ends while systemd moves
// it leaves its scope behind, empty and for ever: so whatever fails meanwhile, the move is waited for. Only its user can kill it then
// (cgroup.kill): sweep_empty_scopes().
class MoveIntoScope {
public:
    MoveIntoScope(SystemdBus &systemd, const std::string &scope, Uid user);
    MoveIntoScope(const MoveIntoScope &) = delete;
    MoveIntoScope &operator=(const MoveIntoScope &) = delete;
    MoveIntoScope(MoveIntoScope &&) = delete;
    MoveIntoScope &operator=(MoveIntoScope &&) = delete;
    ~MoveIntoScope();
    // Returns when this process is inside.
    void wait();

private:
    std::string under_way_; // to this place
};

// Scopes of runners in which nobody is, of all users, a bounded number at once. Throws where it cannot be told.
std::vector<std::string> find_empty_scopes(SystemdBus &systemd);

// Stops them. best_effort: what fails is recorded.
void sweep_empty_scopes(SystemdBus &systemd, const std::string &session_id) noexcept;

} // namespace pi_agent
