// Connecting to one of several addresses, whichever answers first.
#pragma once

#include "gate/host_text.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <vector>

namespace pi_agent {

// With the socket, or an error. Once.
using Dialled = std::function<void(const boost::system::error_code &problem, boost::asio::ip::tcp::socket socket)>;

// Tries the addresses in their order, the other family second, and begins with the next one where the last has not answered for a quarter
// of a second (RFC 8305). These very addresses: nobody is asked again.
void dial(boost::asio::io_context &loop, const std::vector<Address> &addresses, std::uint16_t port, Dialled dialled);

} // namespace pi_agent
