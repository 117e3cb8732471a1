// Connecting to one of several addresses.
#include "gate/dialing.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <memory>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t address_limit = 8;
constexpr auto before_next = std::chrono::milliseconds(250);
constexpr auto for_all = std::chrono::seconds(15);

// The families in turn, so that one that leads nowhere costs one step.
std::vector<tcp::endpoint> in_turn(const std::vector<Address> &addresses, std::uint16_t port)
{
    std::vector<tcp::endpoint> first;
    std::vector<tcp::endpoint> second;
    for (const auto &address : addresses)
        (address.is_v6() == addresses.front().is_v6() ? first : second).emplace_back(address, port);
    std::vector<tcp::endpoint> all;
    for (std::size_t index = 0; index < std::max(first.size(), second.size()); ++index) {
        if (index < first.size()) all.push_back(first[index]);
        if (index < second.size()) all.push_back(second[index]);
    }
    all.resize(std::min(all.size(), address_limit));
    return all;
}

class Dialling : public std::enable_shared_from_this<Dialling> {
public:
    Dialling(asio::io_context &loop, std::vector<tcp::endpoint> endpoints, Dialled dialled)
        : loop_(loop), endpoints_(std::move(endpoints)), dialled_(std::move(dialled)), next_timer_(loop), last_timer_(loop)
    {
    }

    void start()
    {
        last_timer_.expires_after(for_all);
        last_timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->finish(asio::error::timed_out, tcp::socket(self->loop_));
        });
        try_next();
    }

private:
    void try_next()
    {
        if (!dialled_ || next_ == endpoints_.size()) return;
        const auto attempt = std::make_shared<tcp::socket>(loop_);
        attempts_.push_back(attempt);
        ++open_;
        attempt->async_connect(endpoints_[next_++], [self = shared_from_this(), attempt](const error_code &problem) {
            --self->open_;
            if (!self->dialled_) return;
            if (!problem) return self->finish(problem, std::move(*attempt));
            if (self->next_ < self->endpoints_.size()) return self->try_next();
            if (self->open_ == 0) self->finish(problem, tcp::socket(self->loop_));
        });
        next_timer_.expires_after(before_next);
        next_timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->try_next();
        });
    }

    void finish(const error_code &problem, tcp::socket socket)
    {
        if (!dialled_) return;
        const Dialled dialled = std::exchange(dialled_, nullptr);
        next_timer_.cancel();
        last_timer_.cancel();
        error_code ignored;
        for (const auto &attempt : attempts_)
            attempt->close(ignored);
        dialled(problem, std::move(socket));
    }

    asio::io_context &loop_;
    std::vector<tcp::endpoint> endpoints_;
    Dialled dialled_;
    asio::steady_timer next_timer_, last_timer_;
    std::vector<std::shared_ptr<tcp::socket>> attempts_ = {};
    std::size_t next_ = 0, open_ = 0;
};

} // namespace

void dial(asio::io_context &loop, const std::vector<Address> &addresses, std::uint16_t port, Dialled dialled)
{
    if (addresses.empty()) return dialled(asio::error::host_not_found, tcp::socket(loop));
    std::make_shared<Dialling>(loop, in_turn(addresses, port), std::move(dialled))->start();
}

} // namespace pi_agent
