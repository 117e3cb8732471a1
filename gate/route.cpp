// The steps of a request at the reverse route, from its first byte to its end.
#include "gate/gate.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

namespace pi_agent {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::chrono::seconds head_patience{30};      // for a request's head: who sends it slowly holds a connection for nothing
constexpr std::chrono::seconds handshake_patience{30}; // to connect, and for TLS
constexpr std::size_t route_piece = 16UL * 1024;       // a record of TLS has no more

// The provider was not reached, or broke off; nothing was denied.
[[noreturn]] void fail_upstream(const std::string &said)
{
    throw RequestRefusal(502, {}, said);
}

// What came that is the head of a message; empty until that is whole.
std::string_view head_in(const boost::beast::flat_buffer &buffer)
{
    const std::string_view bytes(static_cast<const char *>(buffer.cdata().data()), buffer.size());
    return bytes.substr(0, find_head(bytes, route_head_limit));
}

// What the requests share.
class Route {
public:
    Route(Gate &the_gate, const GateOrder &the_order) noexcept : gate(the_gate), order(the_order) {}

    // OpenSSL takes twenty milliseconds to read the certificates that a host trusts. Here a session pays them with its first request to a
    // provider; made before the gate serves, each start would wait for them.
    asio::ssl::context &tls()
    {
        try {
            if (!tls_) tls_.emplace(make_tls_context(order.authorities));
        } catch (const std::exception &failure) { // no memory, or certificates that are none: the next request tries again
            fail_upstream(std::string("the gate cannot set TLS up: ") + failure.what());
        }
        return *tls_;
    }

    Gate &gate;
    const GateOrder &order;

private:
    std::optional<asio::ssl::context> tls_ = {}; // once a request has needed it
};

// Sends on what comes of a message's body, as soon as it comes, in chunks or as it is. Reads the next piece when the last one is sent: who
// reads slowly slows the other side, and nothing gathers here. Without a parser these are the bytes of a tunnel, after those read ahead.
template <typename From, typename To, typename Parser>
class BodyRelay {
public:
    // Whether reading or writing failed; both are good when the body ended as its head said.
    using Done = std::function<void(error_code reading, error_code writing)>;

    BodyRelay(From &from, To &to, boost::beast::flat_buffer &read_ahead, Parser *parser, bool in_chunks) noexcept
        : from_(from), to_(to), read_ahead_(read_ahead), parser_(parser), in_chunks_(in_chunks)
    {
    }

    // `moved` is told that something moved, and keeps the connection alive until all is done.
    void run(std::function<void()> moved, Done done)
    {
        moved_ = std::move(moved);
        done_ = std::move(done);
        if (parser_ != nullptr) return next();
        send(read_ahead_.cdata());
    }

private:
    void next()
    {
        const auto read = [this](error_code problem, std::size_t size) {
            moved_();
            if (problem && problem != http::error::need_buffer) return finish(problem, {});
            send({piece_.data(), parser_ == nullptr ? size : piece_.size() - parser_->get().body().size});
        };
        if (parser_ == nullptr) return from_.async_read_some(asio::buffer(piece_), read);
        if (parser_->is_done()) {
            if (!in_chunks_) return finish({}, {});
            return asio::async_write(to_, http::make_chunk_last(), [this](error_code problem, std::size_t) { finish({}, problem); });
        }
        auto &body = parser_->get().body();
        body.data = piece_.data();
        body.size = piece_.size();
        body.more = true;
        http::async_read_some(from_, read_ahead_, *parser_, read);
    }

    void send(asio::const_buffer piece)
    {
        if (piece.size() == 0) return next();
        const auto sent = [this](error_code problem, std::size_t) {
            moved_();
            if (problem) return finish({}, problem);
            next();
        };
        if (in_chunks_)
            asio::async_write(to_, http::make_chunk(piece), sent);
        else
            asio::async_write(to_, piece, sent);
    }

    void finish(error_code reading, error_code writing)
    {
        const auto alive = std::exchange(moved_, {});
        std::exchange(done_, {})(reading, writing);
    }

    From &from_;
    To &to_;
    boost::beast::flat_buffer &read_ahead_;
    Parser *parser_;
    bool in_chunks_;
    std::function<void()> moved_{};
    Done done_{};
    std::array<char, route_piece> piece_{};
};

// One request, from its first byte to the last of its answer. Its steps call each other in the order in which they stand here; each runs
// when the one before is done. stop() may come between any two.
class RouteConnection : public std::enable_shared_from_this<RouteConnection> {
public:
    RouteConnection(Route &route, tcp::socket client, std::shared_ptr<void> counted)
        : route_(route), counted_(std::move(counted)), client_(std::move(client)), timer_(client_.get_executor())
    {
    }

    void start()
    {
        wait_at_most(head_patience);
        patience_ = std::chrono::seconds::max(); // not more for each byte: for the whole head
        watch_time();
        read_request();
    }

private:
    // Wraps a step: what it throws refuses the request.
    template <typename Step>
    auto guarded(Step step)
    {
        return [this, self = shared_from_this(), step = std::move(step)](auto &&...results) {
            if (is_ending_) return;
            wait_at_most(patience_);
            try {
                step(std::forward<decltype(results)>(results)...);
            } catch (const RequestRefusal &refusal) {
                refuse(refusal);
            } catch (const std::exception &) { // no memory, or a bug: this request ends, and not the gate
                stop();
            }
        };
    }

    // The next step, once something is sent to the session.
    auto then(void (RouteConnection::*step)())
    {
        return guarded([this, step](error_code problem, std::size_t) {
            if (problem) return stop();
            (this->*step)();
        });
    }

    auto keep()
    {
        return [this, self = shared_from_this()] {
            if (!is_ending_) wait_at_most(patience_);
        };
    }

    void read_request()
    {
        client_.async_read_some(from_client_.prepare(route_piece / 4), guarded([this](error_code problem, std::size_t size) {
                                    from_client_.commit(size);
                                    if (problem) return stop();
                                    const std::string_view head = head_in(from_client_);
                                    if (head.empty()) return read_request();
                                    take_request(head);
                                }));
    }

    void take_request(std::string_view head)
    {
        request_ = read_request_head(head, request_parser_);
        from_client_.consume(head.size());
        error_code gone;
        require_own_caller(request_parser_, client_.local_endpoint(gone).port());
        provider_ = &choose_provider(route_.order.providers, request_.method, request_.target);
        be_patient(handshake_patience);
        reach_name(route_.gate, {{provider_->host}, https_port}, guarded([this](Reached reached) {
                       if (!reached.socket)
                           throw RequestRefusal(502, reached.reason,
                                                provider_->host + (reached.reason
                                                                       ? std::string(": ") + text_of(*reached.reason).meaning +
                                                                             (reached.address.empty() ? "" : ": " + reached.address)
                                                                       : " cannot be reached from this host"));
                       error_code ignored;
                       reached.socket->set_option(tcp::no_delay(true), ignored);
                       client_.set_option(tcp::no_delay(true), ignored);
                       upstream_.emplace(std::move(*reached.socket), route_.tls());
                       shake_hands();
                   }));
    }

    void shake_hands()
    {
        if (!expect_host(*upstream_, provider_->host)) fail_upstream("there is not enough memory for TLS");
        upstream_->async_handshake(TlsStream::client, guarded([this](error_code problem) {
                                       if (problem) refuse_untrusted(problem);
                                       ask_for_body();
                                   }));
    }

    [[noreturn]] void refuse_untrusted(error_code problem)
    {
        if (const std::string why = why_untrusted(*upstream_); !why.empty())
            throw RequestRefusal(502, DenialReason::untrusted,
                                 provider_->host + " showed a certificate that this host does not trust: " + why);
        fail_upstream("the connection to " + provider_->host + " ended in its TLS handshake: " + problem.message());
    }

    // By the gate, which has read the head: the provider does not hear that a client waits. curl does with a megabyte to send.
    void ask_for_body()
    {
        if (!request_.waits_to_send) return send_request();
        asio::async_write(client_, asio::buffer(go_on), then(&RouteConnection::send_request));
    }

    void send_request()
    {
        be_patient(route_.gate.idle);
        watch_time(); // now: the policy's time may be the shorter one
        request_head_.emplace(write_request_head(request_, request_parser_, *provider_));
        asio::async_write(*upstream_, asio::buffer(request_head_->text()), guarded([this](error_code problem, std::size_t) {
            request_head_.reset();
            if (problem) fail_upstream("the connection to " + provider_->host + " ended before the request was sent");
            read_answer();
            if (request_.method == websocket_method) return watch_asker();
            send_body();
        }));
    }

    void send_body()
    {
        up_.emplace(client_, *upstream_, from_client_, &request_parser_, request_.has_chunks);
        up_->run(keep(), [this](error_code reading, error_code) {
            if (is_ending_) return;
            // A session that sends no valid body, or none to its end, gets no answer. A provider that reads no more has answered, or will.
            if (reading) return stop();
            watch_client();
        });
    }

    // So that a request whose client has gone does not go on.
    void watch_client()
    {
        client_.async_read_some(asio::buffer(ignored_), [this, self = shared_from_this()](error_code problem, std::size_t) {
            if (problem && !is_ending_ && (problem != asio::error::eof || !is_still_heard())) stop();
        });
    }

    // A client that ends its side with the request may wait for the answer, or be gone: both look alike until something is sent. An answer
    // in between is one that every client skips (RFC 9110, 15.2), and of one that is gone the kernel says so then. Within an answer its
    // next bytes show it.
    bool is_still_heard()
    {
        if (has_answered_) return true;
        error_code problem;
        client_.write_some(asio::buffer(go_on), problem); // whole: nothing else waits to be sent
        client_.async_wait(tcp::socket::wait_error, [this, self = shared_from_this()](error_code given_up) {
            if (!given_up && !is_ending_) stop();
        });
        return !problem;
    }

    // The same of one that asks for a WebSocket, without reading: what it sends ahead is the tunnel's, and then nobody sees whether it
    // stays.
    void watch_asker()
    {
        client_.async_wait(tcp::socket::wait_read, [this, self = shared_from_this()](error_code problem) {
            if (problem || is_ending_ || has_answered_) return;
            error_code gone;
            if (client_.available(gone) == 0) stop();
        });
    }

    void read_answer()
    {
        upstream_->async_read_some(from_upstream_.prepare(route_piece), guarded([this](error_code problem, std::size_t size) {
                                       from_upstream_.commit(size);
                                       if (problem) fail_upstream(provider_->host + " closed the connection before it answered");
                                       take_answer();
                                   }));
    }

    void take_answer()
    {
        std::optional<AnswerBody> body;
        while (!body) { // one in between says nothing to the session
            std::string_view head;
            try {
                head = head_in(from_upstream_);
                if (head.empty()) return read_answer();
                body = read_answer_head(head, answer_parser_.emplace(), request_.method == websocket_method);
            } catch (const RequestRefusal &refusal) {
                if (!refusal.reason) throw;
                fail_upstream("the answer of " + provider_->host + " cannot be read: " + refusal.what());
            }
            from_upstream_.consume(head.size());
        }
        answer_body_ = *body;
        answer_head_ = write_answer_head(*answer_parser_, answer_body_);
        has_answered_ = true;
        asio::async_write(client_, asio::buffer(answer_head_), then(&RouteConnection::send_answers_body));
    }

    void send_answers_body()
    {
        if (answer_body_ == AnswerBody::none) return end_with({});
        const bool is_tunnel = answer_body_ == AnswerBody::tunnel;
        if (is_tunnel) {
            up_.emplace(client_, *upstream_, from_client_, nullptr, false);
            up_->run(keep(), [this](error_code, error_code) { stop(); });
        }
        down_.emplace(*upstream_, client_, from_upstream_, is_tunnel ? nullptr : &*answer_parser_, answer_body_ == AnswerBody::chunks);
        down_->run(keep(), [this, is_tunnel](error_code reading, error_code writing) {
            if (is_ending_) return;
            // A body that broke off must not look whole: the connection closes without the last chunk, or before the last byte.
            if (is_tunnel || reading || writing) return stop();
            end_with({});
        });
    }

    // --- How it ends: refused, in good order, by a failure, or by its time.

    void refuse(const RequestRefusal &refusal)
    {
        if (refusal.reason) tell(*refusal.reason);
        if (has_answered_) return stop();
        end_with(write_refusal(refusal));
    }

    // A request with pictures is large, and its client hears why nobody wants it only when it has sent it.
    void end_with(std::string last_words)
    {
        is_ending_ = true;
        timer_.cancel();
        error_code ignored;
        if (upstream_) upstream_->lowest_layer().close(ignored);
        say_farewell(client_, std::move(last_words), counted_); // both count until they are gone
    }

    void stop()
    {
        is_ending_ = true;
        error_code ignored;
        timer_.cancel();
        client_.close(ignored);
        if (upstream_) upstream_->lowest_layer().close(ignored);
    }

    void be_patient(std::chrono::seconds time)
    {
        patience_ = time;
        wait_at_most(time);
    }

    void wait_at_most(std::chrono::seconds time)
    {
        if (time != std::chrono::seconds::max()) deadline_ = std::chrono::steady_clock::now() + time;
    }

    void watch_time()
    {
        timer_.expires_at(deadline_);
        timer_.async_wait([this, self = shared_from_this()](error_code problem) {
            if (problem || is_ending_) return;
            if (std::chrono::steady_clock::now() < deadline_) return watch_time();
            end_by_time();
        });
    }

    void end_by_time()
    {
        // Clients open connections ahead; of one that nobody needed nothing is denied.
        const bool said_nothing = provider_ == nullptr && from_client_.size() == 0;
        if (has_answered_ || said_nothing) return stop();
        if (provider_ == nullptr) return refuse(RequestRefusal(408, DenialReason::too_slow, "the request did not come in time"));
        refuse(RequestRefusal(504, {}, provider_->host + " did not answer in time"));
    }

    void tell(DenialReason reason) const
    {
        GateDenial denial{DenialKind::route, request_.target.host, https_port, reason, 1, {}, {}};
        if (denial.host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != std::string::npos) denial.host.clear();
        denial.host.resize(std::min(denial.host.size(), gate_host_bytes));
        for (const auto &provider : route_.order.providers)
            if (provider.host == request_.target.host) denial.where = provider.where;
        route_.gate.denials.report(std::move(denial));
    }

    Route &route_;
    std::shared_ptr<void> counted_; // of the gate's connections
    tcp::socket client_;
    std::optional<TlsStream> upstream_;
    asio::steady_timer timer_;
    std::chrono::steady_clock::time_point deadline_{};
    std::chrono::seconds patience_{};

    boost::beast::flat_buffer from_client_{route_head_limit + route_piece};
    boost::beast::flat_buffer from_upstream_{route_head_limit + route_piece};
    RequestParser request_parser_{};
    std::optional<AnswerParser> answer_parser_{};
    RouteRequest request_{};
    const GateProvider *provider_ = nullptr;
    AnswerBody answer_body_ = AnswerBody::none;
    std::optional<SecretText> request_head_{};
    std::string answer_head_{};
    std::optional<BodyRelay<tcp::socket, TlsStream, RequestParser>> up_{};
    std::optional<BodyRelay<TlsStream, tcp::socket, AnswerParser>> down_{};
    std::array<char, 512> ignored_{};
    bool has_answered_ = false; // the first byte of an answer is on its way to the session
    bool is_ending_ = false;
};

} // namespace

std::function<void(tcp::socket, std::shared_ptr<void>)> open_route(Gate &gate, const GateOrder &order)
{
    if (order.providers.empty()) return {};
    return [route = std::make_shared<Route>(gate, order)](tcp::socket client, std::shared_ptr<void> counted) {
        std::make_shared<RouteConnection>(*route, std::move(client), std::move(counted))->start();
    };
}

} // namespace pi_agent
