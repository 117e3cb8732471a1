// Removing the placeholders that a session made in its user's project, whoever it is that cleans up.
#pragma once

#include "common/base/channel.hpp"
#include "common/host/identity.hpp"

#include "runner/root/errand/errand.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// As the session's user. `session` is the directory of the session `id`, borrowed. What fails is recorded (runner/root/session/record.hpp):
// what is left then has no effect, and a later session in the repository removes it.
class PlaceholderRemoval {
public:
    PlaceholderRemoval(const AsRoot &root, std::string id, FdRef session) : root_(root), id_(std::move(id)), session_(session) {}
    // Has a process ready, which touches nothing before finish(): for who has to wait for the sandbox's end first.
    void begin() noexcept;
    // Until the deadline. Where nothing is mounted any more: what another session has mounted cannot be removed.
    void finish(Deadline deadline) noexcept;

private:
    void start_process();
    void remove(Deadline deadline);

    const AsRoot &root_;
    bool begun_ = false;
    std::string id_;
    FdRef session_;
    std::vector<std::string> paths_;
    std::optional<Child> child_; // none where there is nothing to remove
};

// Both at once.
void remove_placeholders(const AsRoot &root, const std::string &id, FdRef session, Deadline deadline) noexcept;

} // namespace pi_agent
