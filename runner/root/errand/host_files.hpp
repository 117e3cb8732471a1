// Gives a session copies of single files of the host's /etc, made while systemd builds the unit.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

class HostFilesReader {
public:
    // Starts the child, which has the agent's rights; nothing in the host's own view.
    HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view);
    // Waits for it, and writes them, but for `left_out`. Returns what the user should know.
    std::vector<std::string> show(const SessionDirectory &session, const std::vector<std::string> &left_out);

private:
    const HostView &view_;
    std::optional<Child> child_;
};

} // namespace pi_agent
