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

} // namespace pi_agent
