// The addresses of names, from the host's own resolver, and connecting to the one that answers first.
#pragma once

#include "gate/rules.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>

namespace pi_agent {

// The addresses of names, from the host's own resolver: asked once for each name, by threads of their own, for the resolver cannot be
// interrupted.
class Lookup {
public:
    struct Answer {
        std::vector<Address> addresses = {};
        bool is_known = true; // or nobody has answered
    };
    using Found = std::function<void(const Answer &)>;
    explicit Lookup(boost::asio::io_context &loop);
    // Calls `found` from the loop. What was found is used for some seconds.
    void find(const std::string &name, Found found);

private:
    struct Known {
        Answer answer;
        std::chrono::steady_clock::time_point until;
    };
    void answer(const std::string &name, Answer answer);

    boost::asio::io_context &loop_;
    boost::asio::thread_pool threads_;
    std::map<std::string, std::vector<Found>> waiting_ = {};
    std::map<std::string, Known> known_ = {};
};

// Connecting to one of several addresses, whichever answers first.

// With the socket, or an error. Once.
using Dialled = std::function<void(const boost::system::error_code &problem, boost::asio::ip::tcp::socket socket)>;

// Tries the addresses in their order, the other family second, and begins with the next one where the last has not answered for a quarter
// of a second (RFC 8305). These very addresses: nobody is asked again.
void dial(boost::asio::io_context &loop, const std::vector<Address> &addresses, std::uint16_t port, Dialled dialled);

} // namespace pi_agent
