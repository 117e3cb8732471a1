// One connection of the session's: to the proxy, or to anything by itself.
#pragma once

#include "gate/gate.hpp"

namespace pi_agent {

// HTTP_PROXY: "CONNECT host:port", or a plain request with a whole address.
void visit_proxy(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

// What connects by itself: the address that it means is the socket's own, and stands for a name where the gate's name server gave it.
void visit_directly(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

} // namespace pi_agent
