// Finds, as the user, what of the home is shown to the tools inside (policy: toolchains).
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/errand/child.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// One that is there.
struct HomeDirectory {
    std::string path;    // relative to the user's home
    bool is_cache;       // else it is read-only inside
    UniqueFd directory;  // O_PATH
    std::string problem; // why it is not shown; empty where it is
};

struct OpenedHome {
    std::string path;                       // of the home, canonical; empty where it cannot be opened
    std::vector<HomeDirectory> directories; // in the order of the policy, first what is readable; what is missing is left out
};

// With the rights of `user`, who this process must be. Follows no symbolic link below the home: an agent that can write where one leads
// could let it lead elsewhere. A directory that a mount made the same as one around what no session is shown is a problem.
OpenedHome find_home_directories(const Account &user, const ToolchainsPolicy &toolchains);

// From the child to its parent.
void send_home_directories(FdRef channel, const OpenedHome &home);
OpenedHome receive_home_directories(Child &child);

} // namespace pi_agent
