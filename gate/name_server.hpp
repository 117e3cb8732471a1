// The name server of a session: it gives each name an address that stands for it, and asks nobody.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <memory>

namespace pi_agent {

class Gate;

// Over UDP, for as long as the loop runs. Questions beyond a thousand a second are dropped.
void serve_names(Gate &gate, boost::asio::ip::udp::socket socket);

// Over TCP: one connection.
void visit_name_server(Gate &gate, boost::asio::ip::tcp::socket socket, std::shared_ptr<void> counted);

} // namespace pi_agent
