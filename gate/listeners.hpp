// The sockets that the runner made in the session's network, and who answers at each.
#pragma once

#include "gate/gate.hpp"

#include <vector>

namespace pi_agent {

// Throws SystemFailure for one that is no listener.
void serve(Gate &gate, std::vector<ReceivedListener> listeners);

} // namespace pi_agent
