// The wrapper's part on a node of the cluster: srun starts it there, and it stands between that node's runner and a carrier.
#pragma once

#include "common/base/request.hpp"

#include <functional>
#include <string>

namespace pi_agent {

// How main.cpp runs a session that somebody else carries: looks at what it leaves, before and afterwards.
using RunWatched = std::function<void(const Request &request, const std::function<AgentEnded(FdRef cwd, std::string &session)> &client)>;

// The option by which a carrier asks for it.
constexpr const char *node_option = "--pi-agent-on-node";

// Speaks with the carrier over standard input and output. What it says afterwards goes to standard error, which srun passes on.
// Refusals, too, are told to the carrier: the exit status is 0 if it heard everything.
int serve_node(const RunWatched &run_watched);

} // namespace pi_agent
