// Asks the host's resolver in threads, and connects to one of several addresses.
#include "gate/dialing.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace pi_agent {

// Asking the host's resolver in threads.

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t thread_count = 4;
constexpr std::size_t waiting_limit = 64; // names; a session that asks for more at once waits for none of them
constexpr std::size_t known_limit = 256;
constexpr auto found_is_known = std::chrono::seconds(20);
constexpr auto nothing_is_known = std::chrono::seconds(2);

Lookup::Answer ask(asio::thread_pool &threads, const std::string &name)
{
    error_code problem;
    const auto found = tcp::resolver(threads).resolve(name, "", tcp::resolver::address_configured, problem);
    Lookup::Answer answer{{}, !problem || problem == asio::error::host_not_found};
    for (const auto &one : found) {
        const Address address = *to_host(one.endpoint().address()).address;
        if (std::find(answer.addresses.begin(), answer.addresses.end(), address) == answer.addresses.end())
            answer.addresses.push_back(address);
    }
    return answer;
}

} // namespace

Lookup::Lookup(asio::io_context &loop) : loop_(loop), threads_(thread_count) {}

void Lookup::find(const std::string &name, Found found)
{
    const auto known = known_.find(name);
    const bool is_known = known != known_.end() && known->second.until > std::chrono::steady_clock::now();
    const bool is_asked = waiting_.contains(name);
    if (is_known || (!is_asked && waiting_.size() >= waiting_limit)) {
        asio::post(loop_, [found = std::move(found), answer = is_known ? known->second.answer : Answer{{}, false}] { found(answer); });
        return;
    }
    waiting_[name].push_back(std::move(found));
    if (is_asked) return;
    asio::post(threads_, [this, name] {
        Answer found_there = ask(threads_, name);
        asio::post(loop_, [this, name, found_there = std::move(found_there)]() mutable { answer(name, std::move(found_there)); });
    });
}

void Lookup::answer(const std::string &name, Answer answer)
{
    const auto now = std::chrono::steady_clock::now();
    if (known_.size() >= known_limit) std::erase_if(known_, [&](const auto &one) { return one.second.until <= now; });
    if (known_.size() >= known_limit) known_.clear();
    const auto answers = std::move(waiting_[name]);
    waiting_.erase(name);
    for (const auto &found : answers)
        found(answer);
    const auto until = now + (answer.addresses.empty() ? nothing_is_known : found_is_known);
    known_[name] = {std::move(answer), until};
}

// Connecting to one of several addresses.

namespace {

constexpr std::size_t address_limit = 8;
constexpr auto before_next = std::chrono::milliseconds(250);
constexpr auto for_all = std::chrono::seconds(15);

// The families in turn, so that one that leads nowhere costs one step.
std::vector<tcp::endpoint> in_turn(const std::vector<Address> &addresses, std::uint16_t port)
{
    std::vector<tcp::endpoint> first, second, all;
    for (const auto &address : addresses)
        (address.is_v6() == addresses.front().is_v6() ? first : second).emplace_back(address, port);
    for (std::size_t index = 0; index < addresses.size(); ++index)
        for (const auto *family : {&first, &second})
            if (index < family->size()) all.push_back((*family)[index]);
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
