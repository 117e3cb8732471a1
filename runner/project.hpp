// Opens the working directory and the roots again as the caller, and decides on what was opened (design rules 6 and 7).
#pragma once

#include "common/decision.hpp"
#include "common/fd.hpp"
#include "runner/child.hpp"
#include "runner/host_view.hpp"

#include <cstdint>
#include <variant>

namespace pi_agent {

// A directory as the caller opened it, in the host's mount namespace.
struct OpenedProject {
    std::string root_path; // canonical, from the descriptor; in the property alphabet
    UniqueFd root;         // O_PATH
    std::string below;     // the working directory beneath the root; any bytes
    std::uint64_t cwd_device = 0;
    std::uint64_t cwd_inode = 0;
    std::optional<Gid> by_group;
};

// In a child that is the caller: opens the working directory and each root, and answers with them. `claimed_cwd` came from the caller: its
// link text, device, inode and mount id must be those of the path opened here.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel);

// In the parent: takes the answers of `child` and decides on what was opened.
std::variant<OpenedProject, Refused> open_project(Child &child, const Account &caller, const AccessRules &rules, const HostView &view);

} // namespace pi_agent
