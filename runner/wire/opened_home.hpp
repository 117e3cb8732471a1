// What is shown of a user's home, on its way from the child that opened it.
#pragma once

#include "common/base/channel.hpp"
#include "common/base/fd.hpp"

#include <functional>
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

// By the child.
void send_home(FdRef channel, const OpenedHome &home);
// By its parent; `next` is called for each packet. Throws ProtocolError for another number of descriptors, or more than there can be.
OpenedHome receive_home(const std::function<Packet()> &next);

} // namespace pi_agent
