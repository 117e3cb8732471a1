// Answering questions about names, over UDP and TCP.
#include "gate/name_server.hpp"

#include "gate/gate.hpp"
#include "gate/dns_message.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

namespace {

constexpr unsigned questions_a_second = 1000;
constexpr int questions_at_once = 16; // then others have their turn
constexpr unsigned questions_a_connection = 1000;
constexpr auto for_a_question = std::chrono::seconds(10);

class NameServer : public std::enable_shared_from_this<NameServer> {
public:
    NameServer(Gate &gate, udp::socket socket) : gate_(gate), socket_(std::move(socket)) {}

    void start()
    {
        error_code ignored;
        socket_.non_blocking(true, ignored);
        wait();
    }

private:
    void wait()
    {
        socket_.async_wait(udp::socket::wait_read, [self = shared_from_this()](const error_code &problem) {
            if (problem) return;
            for (int count = 0; count < questions_at_once && self->answer_one(); ++count) {
            }
            self->wait();
        });
    }

    // False when no question is left.
    bool answer_one()
    {
        std::array<char, dns_message_limit + 1> bytes{};
        udp::endpoint from;
        error_code problem;
        const std::size_t count = socket_.receive_from(asio::buffer(bytes), from, 0, problem);
        if (problem) return problem != asio::error::would_block; // an answer that nobody took any more
        if (!may_answer()) return true;
        const std::string answer = answer_dns({bytes.data(), count}, gate_.names, gate_.has_v6);
        if (!answer.empty()) socket_.send_to(asio::buffer(answer), from, 0, problem); // who does not get it asks again
        return true;
    }

    bool may_answer()
    {
        const auto now = std::chrono::steady_clock::now();
        if (now - second_ >= std::chrono::seconds(1)) {
            second_ = now;
            answered_ = 0;
        }
        return ++answered_ <= questions_a_second;
    }

    Gate &gate_;
    udp::socket socket_;
    std::chrono::steady_clock::time_point second_ = {};
    unsigned answered_ = 0;
};

// Questions with their length before them, one after the other (RFC 7766).
class NameVisit : public std::enable_shared_from_this<NameVisit> {
public:
    NameVisit(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
        : gate_(gate), socket_(std::move(socket)), counted_(std::move(counted)), timer_(gate.loop)
    {
    }

    void read_length()
    {
        if (++questions_ > questions_a_connection) return close();
        timer_.expires_after(for_a_question);
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem) self->close();
        });
        asio::async_read(socket_, asio::buffer(length_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            const std::size_t length =
                static_cast<std::size_t>(static_cast<unsigned char>(self->length_[0])) << 8U | static_cast<unsigned char>(self->length_[1]);
            if (problem || length > dns_message_limit) return self->close();
            self->message_.assign(length, '\0');
            self->read_question();
        });
    }

private:
    void read_question()
    {
        asio::async_read(socket_, asio::buffer(message_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            const std::string answer = problem ? "" : answer_dns(self->message_, self->gate_.names, self->gate_.has_v6);
            if (answer.empty()) return self->close();
            self->message_ = {static_cast<char>(answer.size() >> 8U), static_cast<char>(answer.size() & 0xffU)};
            self->message_ += answer;
            asio::async_write(self->socket_, asio::buffer(self->message_), [self](const error_code &unsent, std::size_t) {
                if (unsent) return self->close();
                self->read_length();
            });
        });
    }

    void close()
    {
        timer_.cancel();
        error_code ignored;
        socket_.close(ignored);
    }

    Gate &gate_;
    tcp::socket socket_;
    std::shared_ptr<void> counted_;
    asio::steady_timer timer_;
    std::array<char, 2> length_{};
    std::string message_ = {};
    unsigned questions_ = 0;
};

} // namespace

void serve_names(Gate &gate, udp::socket socket)
{
    std::make_shared<NameServer>(gate, std::move(socket))->start();
}

void visit_name_server(Gate &gate, tcp::socket socket, std::shared_ptr<void> counted)
{
    std::make_shared<NameVisit>(gate, std::move(socket), std::move(counted))->read_length();
}

} // namespace pi_agent
