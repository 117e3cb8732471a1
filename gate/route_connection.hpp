// One request at the reverse route, from its first byte to the last of its answer.
#pragma once

#include "common/policy/host_rule.hpp"
#include "gate/route.hpp"
#include "gate/route_body.hpp"
#include "gate/route_head.hpp"
#include "gate/route_tls.hpp"

#include <boost/asio/steady_timer.hpp>

namespace pi_agent {

// Its steps call each other in the order of this list; each runs when the one before is done. stop() may come between any two.
class RouteConnection : public std::enable_shared_from_this<RouteConnection> {
public:
    RouteConnection(Route &route, boost::asio::ip::tcp::socket client, std::shared_ptr<void> counted);
    void start();

private:
    using Socket = boost::asio::ip::tcp::socket;

    void read_request();
    void take_request();
    void connect();
    void shake_hands();
    void ask_for_body();
    void send_request();
    void send_body();
    void watch_client();
    bool is_still_heard();
    void watch_asker();
    void read_answer();
    void take_answer();
    void send_answer();
    void send_answers_body();
    void tunnel();
    void refuse(const RouteRefusal &refusal);
    void refuse_untrusted(const ErrorCode &problem);
    void end_politely();
    void read_out();
    void stop();

    void wait_at_most(std::chrono::seconds time);
    void watch_time();
    void end_by_time();
    void tell(DenialReason reason) const;
    [[nodiscard]] Keep keep();
    // Wraps a step: what it throws refuses the request.
    template <typename Step>
    auto guarded(Step step);

    Route &route_;
    std::shared_ptr<void> counted_; // of the gate's connections
    Socket client_;
    std::optional<TlsStream> upstream_;
    boost::asio::steady_timer timer_;
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
    std::optional<BodyRelay<Socket, TlsStream, RequestParser>> up_{};
    std::optional<BodyRelay<TlsStream, Socket, AnswerParser>> down_{};
    std::optional<ByteRelay<Socket, TlsStream>> bytes_up_{};
    std::optional<ByteRelay<TlsStream, Socket>> bytes_down_{};
    std::array<char, 512> ignored_{};
    std::size_t ignored_size_ = 0;
    bool has_answered_ = false; // the first byte of an answer is on its way to the session
    bool is_refused_ = false;
    bool is_ending_ = false;
};

} // namespace pi_agent
