// How a request at the reverse route ends: refused, in good order, by a failure, or by its time.
#include "gate/route_connection.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds ending_patience{2};
// Of a body that nobody wants any more: a request with pictures is that large, and its client hears why only when it has sent it.
constexpr std::size_t ignored_limit = 64UL * 1024 * 1024;

// For what nobody looks at, so one for all.
std::array<char, 64UL * 1024> &unseen_bytes()
{
    static std::array<char, 64UL * 1024> bytes;
    return bytes;
}

} // namespace

void RouteConnection::refuse(const RouteRefusal &refusal)
{
    if (is_ending_ || is_refused_) return;
    is_refused_ = true;
    if (refusal.reason) tell(*refusal.reason);
    if (has_answered_) {
        stop();
        return;
    }
    has_answered_ = true;
    answer_head_ = write_refusal(refusal);
    if (upstream_) {
        ErrorCode ignored;
        upstream_->lowest_layer().close(ignored);
    }
    wait_at_most(ending_patience);
    watch_time(); // now: it may wait for a later one
    asio::async_write(client_, asio::buffer(answer_head_), [this, self = shared_from_this()](ErrorCode, std::size_t) { end_politely(); });
}

// With bytes of the session unread, a close would reset the connection, and the answer could be lost with it.
void RouteConnection::end_politely()
{
    if (is_ending_) return;
    is_ending_ = true;
    ErrorCode ignored;
    if (upstream_) upstream_->lowest_layer().close(ignored);
    client_.cancel(ignored);
    client_.shutdown(Socket::shutdown_send, ignored);
    wait_at_most(ending_patience);
    watch_time(); // now: it may wait for a later one
    read_out();
}

void RouteConnection::read_out()
{
    client_.async_read_some(asio::buffer(unseen_bytes()), [this, self = shared_from_this()](ErrorCode problem, std::size_t size) {
        ignored_size_ += size;
        if (problem || ignored_size_ > ignored_limit)
            stop();
        else
            read_out();
    });
}

void RouteConnection::stop()
{
    is_ending_ = true;
    ErrorCode ignored;
    timer_.cancel();
    client_.close(ignored);
    if (upstream_) upstream_->lowest_layer().close(ignored);
}

void RouteConnection::wait_at_most(std::chrono::seconds time)
{
    if (time != std::chrono::seconds::max()) deadline_ = std::chrono::steady_clock::now() + time;
}

void RouteConnection::watch_time()
{
    timer_.expires_at(deadline_);
    timer_.async_wait([this, self = shared_from_this()](ErrorCode problem) {
        if (problem) return;
        if (std::chrono::steady_clock::now() < deadline_)
            watch_time();
        else
            end_by_time();
    });
}

void RouteConnection::end_by_time()
{
    // Clients open connections ahead; of one that nobody needed nothing is denied.
    const bool said_nothing = provider_ == nullptr && from_client_.size() == 0;
    if (has_answered_ || is_ending_ || said_nothing)
        stop();
    else if (provider_ == nullptr)
        refuse(RouteRefusal(408, DenialReason::too_slow, "the request did not come in time"));
    else
        refuse(RouteRefusal(504, {}, provider_->host + " did not answer in time"));
}

void RouteConnection::tell(DenialReason reason) const
{
    GateDenial denial{DenialKind::route, request_.target.host, https_port, reason, 1, {}};
    if (denial.host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != std::string::npos) denial.host.clear();
    denial.host.resize(std::min(denial.host.size(), gate_host_bytes));
    for (const auto &provider : route_.order_.providers)
        if (provider.host == request_.target.host) denial.where = provider.where;
    route_.needs_.tell(std::move(denial));
}

Keep RouteConnection::keep()
{
    return {shared_from_this(), [this] {
                if (!is_ending_) wait_at_most(patience_);
            }};
}

} // namespace pi_agent
