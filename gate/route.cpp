// The steps of a request at the reverse route, from its first byte to its end.
#include "gate/route.hpp"

namespace pi_agent {

// The steps of a request at the reverse route.

namespace asio = boost::asio;

namespace {

constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::chrono::seconds head_patience{30};      // for a request's head: who sends it slowly holds a connection for nothing
constexpr std::chrono::seconds handshake_patience{30}; // to connect, and for TLS

// The provider was not reached, or broke off; nothing was denied.
[[noreturn]] void fail_upstream(const std::string &said, unsigned status = 502)
{
    throw RouteRefusal(status, {}, said);
}

std::size_t head_of(const boost::beast::flat_buffer &buffer)
{
    const auto bytes = buffer.cdata();
    return find_head({static_cast<const char *>(bytes.data()), bytes.size()});
}

std::string_view first_of(const boost::beast::flat_buffer &buffer, std::size_t size)
{
    return {static_cast<const char *>(buffer.cdata().data()), size};
}

} // namespace

RouteConnection::RouteConnection(Route &route, Socket client, std::shared_ptr<void> counted)
    : route_(route), counted_(std::move(counted)), client_(std::move(client)), timer_(client_.get_executor())
{
}

template <typename Step>
auto RouteConnection::guarded(Step step)
{
    return [this, self = shared_from_this(), step = std::move(step)](auto &&...results) {
        if (is_ending_) return;
        wait_at_most(patience_);
        try {
            step(std::forward<decltype(results)>(results)...);
        } catch (const RouteRefusal &refusal) {
            refuse(refusal);
        } catch (const std::exception &) { // no memory, or a bug: this request ends, and not the gate
            stop();
        }
    };
}

void RouteConnection::start()
{
    wait_at_most(head_patience);
    patience_ = std::chrono::seconds::max(); // not more for each byte: for the whole head
    watch_time();
    read_request();
}

void RouteConnection::read_request()
{
    client_.async_read_some(from_client_.prepare(route_piece / 4), guarded([this](ErrorCode problem, std::size_t size) {
                                from_client_.commit(size);
                                if (problem)
                                    stop();
                                else if (head_of(from_client_) == 0)
                                    read_request();
                                else
                                    take_request();
                            }));
}

void RouteConnection::take_request()
{
    const std::size_t size = head_of(from_client_);
    request_ = read_request_head(first_of(from_client_, size), request_parser_);
    from_client_.consume(size);
    ErrorCode gone;
    require_own_caller(request_parser_, client_.local_endpoint(gone).port());
    provider_ = &choose_provider(route_.order_.providers, request_.method, request_.target);
    patience_ = handshake_patience;
    wait_at_most(patience_);
    connect();
}

void RouteConnection::connect()
{
    route_.needs_.connect(provider_->host, guarded([this](Socket socket, const RouteRefusal *problem) {
                              if (problem != nullptr) throw RouteRefusal(*problem);
                              ErrorCode ignored;
                              socket.set_option(asio::ip::tcp::no_delay(true), ignored);
                              client_.set_option(asio::ip::tcp::no_delay(true), ignored);
                              upstream_.emplace(std::move(socket), route_.tls());
                              shake_hands();
                          }));
}

void RouteConnection::shake_hands()
{
    if (!expect_host(*upstream_, provider_->host)) fail_upstream("there is not enough memory for TLS");
    upstream_->async_handshake(TlsStream::client, guarded([this](ErrorCode problem) {
                                   if (problem)
                                       refuse_untrusted(problem);
                                   else
                                       ask_for_body();
                               }));
}

// By the gate, which has read the head: the provider does not hear that a client waits. curl does with a megabyte to send.
void RouteConnection::ask_for_body()
{
    if (!request_.waits_to_send) return send_request();
    asio::async_write(client_, asio::buffer(go_on.data(), go_on.size()), guarded([this](ErrorCode problem, std::size_t) {
                          if (problem)
                              stop();
                          else
                              send_request();
                      }));
}

void RouteConnection::refuse_untrusted(const ErrorCode &problem)
{
    if (const std::string why = why_untrusted(*upstream_); !why.empty())
        throw RouteRefusal(502, DenialReason::untrusted, provider_->host + " showed a certificate that this host does not trust: " + why);
    fail_upstream("the connection to " + provider_->host + " ended in its TLS handshake: " + problem.message());
}

void RouteConnection::send_request()
{
    patience_ = route_.idle_;
    wait_at_most(patience_);
    watch_time(); // now: the policy's time may be the shorter one
    request_head_.emplace(write_request_head(request_, request_parser_, *provider_));
    const std::string_view head = request_head_->text();
    asio::async_write(*upstream_, asio::buffer(head.data(), head.size()), guarded([this](ErrorCode problem, std::size_t) {
        request_head_.reset();
        if (problem) fail_upstream("the connection to " + provider_->host + " ended before the request was sent");
        read_answer();
        if (request_.method == websocket_method)
            watch_asker();
        else
            send_body();
    }));
}

void RouteConnection::send_body()
{
    up_.emplace(client_, *upstream_, from_client_, request_parser_, request_.has_chunks);
    up_->run(keep(), [this](ErrorCode reading, ErrorCode) {
        if (is_ending_ || is_refused_) return;
        // A session that sends no valid body, or none to its end, gets no answer. A provider that reads no more has answered, or will.
        if (reading)
            stop();
        else
            watch_client();
    });
}

// So that a request whose client has gone does not go on.
void RouteConnection::watch_client()
{
    client_.async_read_some(asio::buffer(ignored_), [this, self = shared_from_this()](ErrorCode problem, std::size_t) {
        if (problem && !is_ending_ && (problem != asio::error::eof || !is_still_heard())) stop();
    });
}

// A client that ends its side with the request may wait for the answer, or be gone: both look alike until something is sent. An answer in
// between is one that every client skips (RFC 9110, 15.2), and of one that is gone the kernel says so then. Within an answer its next bytes
// show it.
bool RouteConnection::is_still_heard()
{
    if (has_answered_) return true;
    ErrorCode problem;
    client_.write_some(asio::buffer(go_on.data(), go_on.size()), problem); // whole: nothing else waits to be sent
    client_.async_wait(Socket::wait_error, [this, self = shared_from_this()](ErrorCode given_up) {
        if (!given_up && !is_ending_) stop();
    });
    return !problem;
}

// The same of one that asks for a WebSocket, without reading: what it sends ahead is the tunnel's, and then nobody sees whether it stays.
void RouteConnection::watch_asker()
{
    client_.async_wait(Socket::wait_read, [this, self = shared_from_this()](ErrorCode problem) {
        if (problem || is_ending_ || has_answered_) return;
        ErrorCode gone;
        if (client_.available(gone) == 0) stop();
    });
}

void RouteConnection::read_answer()
{
    upstream_->async_read_some(from_upstream_.prepare(route_piece), guarded([this](ErrorCode problem, std::size_t size) {
                                   from_upstream_.commit(size);
                                   if (problem) fail_upstream(provider_->host + " closed the connection before it answered");
                                   take_answer();
                               }));
}

void RouteConnection::take_answer()
{
    for (std::optional<AnswerBody> body; !body;) { // one in between says nothing to the session
        std::size_t size = 0;
        try {
            size = head_of(from_upstream_);
            if (size > 0)
                body = read_answer_head(first_of(from_upstream_, size), answer_parser_.emplace(), request_.method == websocket_method);
        } catch (const RouteRefusal &refusal) {
            if (!refusal.reason) throw;
            fail_upstream("the answer of " + provider_->host + " cannot be read: " + refusal.what());
        }
        if (size == 0) return read_answer();
        from_upstream_.consume(size);
        answer_body_ = body.value_or(AnswerBody::none);
    }
    send_answer();
}

void RouteConnection::send_answer()
{
    answer_head_ = write_answer_head(*answer_parser_, answer_body_);
    has_answered_ = true;
    asio::async_write(client_, asio::buffer(answer_head_), guarded([this](ErrorCode problem, std::size_t) {
                          if (problem)
                              stop();
                          else if (answer_body_ == AnswerBody::tunnel)
                              tunnel();
                          else if (answer_body_ == AnswerBody::none)
                              end_politely();
                          else
                              send_answers_body();
                      }));
}

void RouteConnection::send_answers_body()
{
    down_.emplace(*upstream_, client_, from_upstream_, *answer_parser_, answer_body_ == AnswerBody::chunks);
    down_->run(keep(), [this](ErrorCode reading, ErrorCode writing) {
        if (is_ending_) return;
        // A body that broke off must not look whole: the connection closes without the last chunk, or before the last byte.
        if (reading || writing)
            stop();
        else
            end_politely();
    });
}

void RouteConnection::tunnel()
{
    bytes_up_.emplace(client_, *upstream_);
    bytes_down_.emplace(*upstream_, client_);
    const auto done = [this] { stop(); };
    bytes_up_->run(from_client_, keep(), done);
    bytes_down_->run(from_upstream_, keep(), done);
}

// How a request at the reverse route ends: refused, in good order, by a failure, or by its time.

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

// How the reverse route is part of the gate.

namespace {

RouteRefusal unreached(const std::string &host, std::optional<DenialReason> reason)
{
    return {502, reason, host + (reason ? std::string(": ") + text_of(*reason).meaning : " cannot be reached from this host")};
}

} // namespace

Route::Route(const GateOrder &order, RouteNeeds needs)
    : order_(order), needs_(std::move(needs)), idle_(static_cast<std::chrono::seconds::rep>(order.idle_seconds))
{
}

// OpenSSL takes twenty milliseconds to read the certificates that a host trusts. Here a session pays them with its first request to a
// provider; made before the gate serves, each start would wait for them.
boost::asio::ssl::context &Route::tls()
{
    try {
        if (!tls_) tls_.emplace(make_tls_context(order_.authorities));
    } catch (const std::exception &failure) { // no memory, or certificates that are none: the next request tries again
        throw RouteRefusal(502, {}, std::string("the gate cannot set TLS up: ") + failure.what());
    }
    return *tls_;
}

void Route::serve(boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted)
{
    std::make_shared<RouteConnection>(*this, std::move(client), std::move(counted))->start();
}

std::function<void(boost::asio::ip::tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order)
{
    if (order.providers.empty()) return {};
    RouteNeeds needs;
    needs.connect = [&gate](const std::string &host, RouteNeeds::Connected connected) {
        reach_name(gate, {{host}, https_port}, [&gate, host, connected = std::move(connected)](Reached reached) {
            if (reached.socket) return connected(std::move(*reached.socket), nullptr);
            const RouteRefusal refusal = unreached(host, reached.reason);
            connected(boost::asio::ip::tcp::socket(gate.loop), &refusal);
        });
    };
    needs.tell = [&gate](GateDenial denial) { gate.denials.report(std::move(denial)); };
    return [route = std::make_shared<Route>(order, std::move(needs))](boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted) {
        route->serve(std::move(client), std::move(counted));
    };
}

} // namespace pi_agent
