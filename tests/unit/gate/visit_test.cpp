// Connections of a session at its gate, and what becomes of them: gate/gate.hpp
#include "gate/gate.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <doctest/doctest.h>
#include <thread>

using namespace pi_agent;
using boost::asio::ip::tcp;
using boost::system::error_code;

namespace visit_test {

namespace {

using Visitor = void (*)(Gate &, tcp::socket, std::shared_ptr<void>);

GateOrder order_of(std::vector<GateRule> rules)
{
    GateOrder order;
    order.rules = std::move(rules);
    return order;
}

// A gate in a thread of its own. It ends when the connections of the test have.
class RunningGate {
public:
    explicit RunningGate(std::vector<GateRule> rules) : gate_(loop_, pipe_.writing, order_of(std::move(rules)))
    {
        thread_ = std::thread([this] { loop_.run(); });
    }
    RunningGate(const RunningGate &) = delete;
    RunningGate &operator=(const RunningGate &) = delete;
    ~RunningGate()
    {
        work_.reset();
        thread_.join();
    }

    // The session's end of a connection that the visitor gets.
    tcp::socket visit(Visitor visitor)
    {
        tcp::acceptor acceptor(blocking_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
        return visit(visitor, acceptor);
    }
    tcp::socket visit(Visitor visitor, tcp::acceptor &acceptor)
    {
        tcp::socket session(blocking_);
        session.connect(acceptor.local_endpoint());
        tcp::socket accepted(loop_);
        acceptor.accept(accepted);
        boost::asio::post(
            loop_, [this, visitor, one = std::move(accepted)]() mutable { visitor(gate_, std::move(one), gate_.count_connection()); });
        return session;
    }

    // What the gate tells the runner next.
    GateDenial told()
    {
        const auto packet = read_packet(pipe_.reading, in_seconds(5));
        REQUIRE(packet);
        return std::get<GateDenial>(decode_gate_message(*packet));
    }

private:
    Pipe pipe_ = make_packet_pipe();
    boost::asio::io_context blocking_{};
    boost::asio::io_context loop_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ = boost::asio::make_work_guard(loop_);
    Gate gate_;
    std::thread thread_;
};

void write(tcp::socket &socket, std::string_view bytes)
{
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
}

// The first line of the answer; empty where the gate says nothing. The session then breaks off, so that no connection outlives the test.
std::string ask(tcp::socket session, std::string_view said)
{
    write(session, said);
    std::string answer;
    error_code problem;
    boost::asio::read_until(session, boost::asio::dynamic_buffer(answer), "\r\n", problem);
    session.set_option(boost::asio::socket_base::linger(true, 0));
    session.close();
    return answer.substr(0, answer.find("\r\n"));
}

std::string connect_to(const std::string &host, std::uint16_t port)
{
    return "CONNECT " + host + ":" + std::to_string(port) + " HTTP/1.1\r\n\r\n";
}

std::string read_exactly(tcp::socket &socket, std::size_t size)
{
    std::string bytes(size, '\0');
    boost::asio::read(socket, boost::asio::buffer(bytes));
    return bytes;
}

std::string with_length(const std::string &message)
{
    return std::string{static_cast<char>(message.size() >> 8U), static_cast<char>(message.size() & 0xffU)} + message;
}

} // namespace

TEST_CASE("a rule for an address of the loopback is for that address, and one for localhost for what is there")
{
    boost::asio::io_context outside;
    const tcp::acceptor server(outside, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    const std::uint16_t port = server.local_endpoint().port();
    const auto answer = [port](const char *rule, const char *asked) {
        RunningGate gate({{rule, port, "p:1"}});
        return ask(gate.visit(visit_proxy), connect_to(asked, port));
    };
    CHECK(answer("127.0.0.1", "127.0.0.1") == "HTTP/1.1 200 Connection established");
    CHECK(answer("localhost", "localhost") == "HTTP/1.1 200 Connection established");
    CHECK(answer("localhost", "127.0.0.2") == "HTTP/1.1 200 Connection established");
    CHECK(answer("127.0.0.2", "127.0.0.2") == "HTTP/1.1 504 Gateway Timeout"); // nobody listens there
    CHECK(answer("127.0.0.0/8", "127.0.0.2") == "HTTP/1.1 504 Gateway Timeout");
    CHECK(answer("127.0.0.2", "127.0.0.1") == "HTTP/1.1 403 Forbidden");
}

TEST_CASE("a tunnel that no rule allows is refused with words, and told")
{
    RunningGate gate({{"a.example", 443, "p:1"}});
    CHECK(ask(gate.visit(visit_proxy), connect_to("other.example", 443)) == "HTTP/1.1 403 Forbidden");
    const GateDenial other = gate.told();
    CHECK(other.kind == DenialKind::tunnel);
    CHECK(other.host == "other.example");
    CHECK(other.port == 443);
    CHECK(other.reason == DenialReason::no_rule);
    CHECK(other.where.empty());
    CHECK(ask(gate.visit(visit_proxy), connect_to("a.example", 22)) == "HTTP/1.1 403 Forbidden");
    const GateDenial almost = gate.told();
    CHECK(almost.reason == DenialReason::other_port);
    CHECK(almost.where == "p:1");
}

TEST_CASE("who asks for the gate's own ports by the proxy, or for what needs TLS without it, is refused")
{
    RunningGate gate({{"a.example", 443, "p:1"}});
    const auto reason = [&gate](std::string_view request) {
        const std::string answer = ask(gate.visit(visit_proxy), request);
        return answer.substr(9, 3) + " " + text_of(gate.told().reason).word;
    };
    CHECK(reason("POST http://127.0.0.1:809/api.openai.com/v1/responses HTTP/1.1\r\nHost: 127.0.0.1:809\r\n\r\n") == "403 no-rule");
    CHECK(reason("GET http://a.example:443/ HTTP/1.1\r\n\r\n") == "403 plain-http");
    CHECK(reason("GET https://a.example/ HTTP/1.1\r\n\r\n") == "403 plain-http");
    CHECK(reason("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n") == "400 malformed");
    CHECK(reason("CONNECT a.example HTTP/1.1\r\n\r\n") == "400 malformed");
}

TEST_CASE("an address that no rule names is closed without a word, and told")
{
    RunningGate gate({{"a.example", 443, "p:1"}});
    CHECK(ask(gate.visit(visit_directly), "SSH-2.0-x\r\n").empty());
    const GateDenial denial = gate.told();
    CHECK(denial.kind == DenialKind::transparent);
    CHECK(denial.host == "127.0.0.1");
    CHECK(denial.reason == DenialReason::no_rule);
}

TEST_CASE("either address of the loopback leads to the one that a rule names")
{
    boost::asio::io_context outside;
    tcp::acceptor inside(outside, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    const std::uint16_t port = inside.local_endpoint().port();
    tcp::acceptor server(outside);
    error_code problem;
    server.open(tcp::v6(), problem);
    if (!problem) server.bind(tcp::endpoint(boost::asio::ip::address_v6::loopback(), port), problem);
    if (problem) return; // no IPv6 here
    server.listen();
    RunningGate gate({{"::1", port, "p:1"}});
    tcp::socket session = gate.visit(visit_directly, inside);
    tcp::socket there(outside);
    bool is_there = false;
    server.async_accept(there, [&is_there](const error_code &failure) { is_there = !failure; });
    outside.run_for(std::chrono::seconds(5));
    REQUIRE(is_there);
    write(there, "hello");
    CHECK(read_exactly(session, 5) == "hello");
}

TEST_CASE("names are asked for over TCP as well, one question after the other, in whatever pieces")
{
    const std::string question = std::string("id\1\0\0\1\0\0\0\0\0\0", 12) +
                                 "\x01"
                                 "a"
                                 "\x07"
                                 "example" +
                                 std::string("\0\0\1\0\1", 5);
    RunningGate gate({});
    tcp::socket session = gate.visit(visit_name_server);
    const std::string asked = with_length(question) + with_length(question);
    write(session, asked.substr(0, 1));
    write(session, asked.substr(1));
    const std::size_t size = question.size() + 16; // one address
    for (int count = 0; count < 2; ++count) {
        const std::string answer = read_exactly(session, 2 + size);
        CHECK(answer.substr(0, 2) == with_length(answer.substr(2)).substr(0, 2));
        CHECK(answer.substr(answer.size() - 4) == std::string("\xc6\x12\0\x01", 4));
    }
    write(session, "\x7f\xff"); // longer than any question
    char more = 0;
    error_code problem;
    boost::asio::read(session, boost::asio::buffer(&more, 1), problem);
    CHECK(problem);
}

TEST_CASE("the addresses that were judged are dialled, the next one where one does not answer, and no other")
{
    boost::asio::io_context loop;
    const tcp::acceptor server(loop, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    const auto reached = [&](const std::vector<Address> &addresses) {
        std::string where = "nobody was told";
        dial(loop, addresses, server.local_endpoint().port(), [&where](const error_code &problem, const tcp::socket &socket) {
            where = problem ? "nobody" : socket.remote_endpoint().address().to_string();
        });
        loop.restart();
        loop.run();
        return where;
    };
    const Address here = boost::asio::ip::make_address("127.0.0.1");
    const Address silent = boost::asio::ip::make_address("127.0.0.2");
    CHECK(reached({here}) == "127.0.0.1");
    CHECK(reached({silent, here}) == "127.0.0.1");
    CHECK(reached({silent}) == "nobody");
    CHECK(reached({}) == "nobody");
}

namespace {

// Whatever a look-up ends with; the names are addresses, so that nobody outside is asked.
struct Found {
    std::size_t asked = 0, not_asked = 0;
    Lookup::Found count()
    {
        return [this](const Lookup::Answer &answer) { ++(answer.is_asked ? asked : not_asked); };
    }
    void find_other_names(Lookup &lookup, std::size_t number)
    {
        for (std::size_t last = 1; last <= number; ++last)
            lookup.find("127.0.0." + std::to_string(last), count());
    }
    void run_until(boost::asio::io_context &loop, std::size_t all) const
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        for (; asked + not_asked < all && std::chrono::steady_clock::now() < end; loop.restart())
            loop.run_for(std::chrono::milliseconds(10));
    }
};

} // namespace

TEST_CASE("only so many names wait at once, and so many questions for one: of the others is said that nobody was asked")
{
    boost::asio::io_context loop;
    Lookup lookup(loop);
    Found names, questions;
    names.find_other_names(lookup, 66);
    for (std::size_t count = 0; count < connection_limit + 9; ++count)
        lookup.find("127.0.0.1", questions.count()); // it waits already
    names.run_until(loop, 66);
    questions.run_until(loop, connection_limit + 9);
    CHECK(names.asked == 64);
    CHECK(names.not_asked == 2);
    CHECK(questions.asked == connection_limit - 1);
    CHECK(questions.not_asked == 10);
    lookup.find("127.0.0.66", names.count()); // there is room again
    names.run_until(loop, 67);
    CHECK(names.asked == 65);
}

TEST_CASE("a name that nobody was asked for is judged by nobody, so the proxy above is not asked for it")
{
    const Pipe pipe = make_packet_pipe();
    boost::asio::io_context loop;
    tcp::acceptor proxy(loop, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    GateOrder order = order_of({{"a.example", 443, "p:1"}});
    order.via = {{"127.0.0.1", proxy.local_endpoint().port(), "p:2"}};
    Gate gate(loop, pipe.writing, order);
    bool is_proxy_asked = false;
    proxy.async_accept([&is_proxy_asked](const error_code &problem, const tcp::socket & /*socket*/) { is_proxy_asked = !problem; });
    Found names;
    names.find_other_names(gate.lookup, 64);
    std::optional<DenialReason> reason;
    bool is_over = false;
    reach(gate, {*read_host("a.example"), 443}, [&](const Reached &reached) {
        reason = reached.reason;
        is_over = true;
    });
    names.run_until(loop, 64);
    for (int count = 0; count < 100 && !is_over; ++count, loop.restart())
        loop.run_for(std::chrono::milliseconds(20));
    CHECK(is_over);
    CHECK(reason == DenialReason::no_room);
    CHECK_FALSE(is_proxy_asked);
}

TEST_CASE("there are only so many connections at once, and room when one ends")
{
    const Pipe pipe = make_packet_pipe();
    boost::asio::io_context loop;
    Gate gate(loop, pipe.writing, GateOrder{});
    std::vector<std::shared_ptr<void>> all;
    while (all.size() < connection_limit) {
        all.push_back(gate.count_connection());
        REQUIRE(all.back());
    }
    CHECK_FALSE(gate.count_connection());
    all.pop_back();
    CHECK(gate.count_connection());
    all.clear();
    while (all.size() < route_limit) {
        all.push_back(gate.count_connection(true));
        REQUIRE(all.back());
    }
    CHECK_FALSE(gate.count_connection(true));
    CHECK(gate.count_connection());
    all.pop_back();
    CHECK(gate.count_connection(true));
    all.clear();
    CHECK((gate.connections == 0 && gate.at_route == 0));
}

} // namespace visit_test
