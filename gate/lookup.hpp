// The addresses of names, from the host's own resolver: asked once for each name, by threads of their own, for the resolver cannot be
// interrupted.
#pragma once

#include "gate/host_text.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pi_agent {

class Lookup {
public:
    using Found = std::function<void(const std::vector<Address> &)>;
    explicit Lookup(boost::asio::io_context &loop);
    // Calls `found` from the loop, with nothing where the name has no address, or nobody answers. What was found is used for some seconds.
    void find(const std::string &name, Found found);

private:
    struct Known {
        std::vector<Address> addresses;
        std::chrono::steady_clock::time_point until;
    };
    void answer(const std::string &name, std::vector<Address> addresses);

    boost::asio::io_context &loop_;
    boost::asio::thread_pool threads_;
    std::map<std::string, std::vector<Found>> waiting_ = {};
    std::map<std::string, Known> known_ = {};
};

} // namespace pi_agent
