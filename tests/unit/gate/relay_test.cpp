// Bytes through the gate, and what it tells the runner: gate/gate.hpp
#include "gate/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <doctest/doctest.h>
#include <future>
#include <thread>

using namespace pi_agent;
using boost::asio::ip::tcp;
using boost::system::error_code;

namespace relay_test {

namespace {

// A relay between two connections, whose other ends are the test's: they block, and the relay runs in a thread of its own.
class Relayed {
public:
    explicit Relayed(RelaySetup (*change)(RelaySetup) = [](RelaySetup setup) { return setup; })
    {
        RelaySetup setup{connected(session), connected(outside)};
        setup.idle = std::chrono::seconds(30);
        start_relay(change(std::move(setup)));
        thread_ = std::thread([this] { loop_.run(); });
    }
    Relayed(const Relayed &) = delete;
    Relayed &operator=(const Relayed &) = delete;
    // The relay ends with its connections, and the loop with the relay.
    ~Relayed()
    {
        error_code ignored;
        session.close(ignored);
        outside.close(ignored);
        thread_.join();
    }

    boost::asio::io_context blocking{};
    tcp::socket session{blocking}, outside{blocking};

private:
    tcp::socket connected(tcp::socket &other)
    {
        tcp::acceptor acceptor(blocking, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
        other.connect(acceptor.local_endpoint());
        tcp::socket accepted(loop_);
        acceptor.accept(accepted);
        return accepted;
    }

    boost::asio::io_context loop_{1};
    std::thread thread_;
};

void write(tcp::socket &socket, std::string_view bytes)
{
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
}

std::string read_all(tcp::socket &socket, error_code &problem)
{
    std::string bytes;
    boost::asio::read(socket, boost::asio::dynamic_buffer(bytes), problem);
    return bytes;
}

std::string read_all(tcp::socket &socket)
{
    error_code problem;
    std::string bytes = read_all(socket, problem);
    CHECK(problem == boost::asio::error::eof);
    return bytes;
}

FirstBytes judge_word(std::string_view bytes)
{
    FirstBytes first;
    if (bytes.size() < 4) return first;
    first.state = bytes.starts_with("good") ? FirstBytes::State::passes : FirstBytes::State::refused;
    first.forward = "Good" + std::string(bytes.substr(4));
    first.farewell = "no";
    return first;
}

} // namespace

TEST_CASE("each side's end is handed on, and the other side may go on")
{
    Relayed relay;
    write(relay.session, "question");
    relay.session.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.outside) == "question");
    write(relay.outside, "answer");
    relay.outside.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.session) == "answer");
}

TEST_CASE("a side that breaks off breaks the other off, so that half an answer does not look whole")
{
    Relayed relay;
    write(relay.outside, "half");
    std::string half(4, '\0');
    boost::asio::read(relay.session, boost::asio::buffer(half));
    relay.outside.set_option(boost::asio::socket_base::linger(true, 0));
    relay.outside.close();
    error_code problem;
    CHECK(read_all(relay.session, problem).empty());
    CHECK(problem == boost::asio::error::connection_reset);
}

TEST_CASE("what the outside said before it broke off arrives, while the session still speaks")
{
    Relayed relay;
    auto written = std::async(std::launch::async, [&] {
        error_code problem;
        const std::string piece(64UL * 1024, 'x');
        while (!problem)
            boost::asio::write(relay.session, boost::asio::buffer(piece), problem);
    });
    char first = 0;
    boost::asio::read(relay.outside, boost::asio::buffer(&first, 1));
    write(relay.outside, "too long");
    relay.outside.close(); // with bytes unread: a reset
    error_code problem;
    CHECK(read_all(relay.session, problem) == "too long");
    written.get();
}

TEST_CASE("more than a side takes at once arrives whole, and in order")
{
    Relayed relay;
    std::string sent(8UL * 1024 * 1024, '\0');
    for (std::size_t at = 0; at < sent.size(); ++at)
        sent[at] = static_cast<char>(at % 251);
    auto written = std::async(std::launch::async, [&] {
        write(relay.session, sent);
        relay.session.shutdown(tcp::socket::shutdown_send);
    });
    CHECK(read_all(relay.outside) == sent);
    written.get();
}

TEST_CASE("what was read before the relay passes first, and further bytes only as far as they may")
{
    Relayed relay([](RelaySetup setup) {
        setup.first = "head";
        setup.further = 3;
        return setup;
    });
    write(relay.session, "bodyGET /second");
    relay.session.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.outside) == "headbod");
}

TEST_CASE("nothing passes before it is judged, and then what the judge says")
{
    Relayed relay([](RelaySetup setup) {
        setup.first = "go";
        setup.judge = judge_word;
        return setup;
    });
    write(relay.session, "od morning");
    relay.session.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.outside) == "Good morning");
}

TEST_CASE("what is refused gets the judge's farewell, and the outside nothing")
{
    Relayed relay([](RelaySetup setup) {
        setup.judge = judge_word;
        return setup;
    });
    write(relay.session, "evil");
    CHECK(read_all(relay.session) == "no");
    error_code problem;
    CHECK(read_all(relay.outside, problem).empty());
}

TEST_CASE("who is refused in the middle of a long speech hears the farewell after it")
{
    Relayed relay([](RelaySetup setup) {
        setup.judge = judge_word;
        return setup;
    });
    write(relay.session, "evil" + std::string(16UL * 1024 * 1024, 'x'));
    CHECK(read_all(relay.session) == "no");
}

TEST_CASE("who ends before there is enough to judge is broken off, and who need not speak may listen")
{
    {
        Relayed relay([](RelaySetup setup) {
            setup.judge = judge_word;
            return setup;
        });
        write(relay.session, "goo");
        relay.session.shutdown(tcp::socket::shutdown_send);
        error_code problem;
        CHECK(read_all(relay.outside, problem).empty());
    }
    Relayed relay([](RelaySetup setup) {
        setup.judge = judge_word;
        setup.is_patient = true;
        return setup;
    });
    relay.session.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.outside).empty());
    write(relay.outside, "greeting");
    relay.outside.shutdown(tcp::socket::shutdown_send);
    CHECK(read_all(relay.session) == "greeting");
}

TEST_CASE("what is held beyond a piece each is bounded for all together, and comes free again")
{
    constexpr std::size_t most_large = most_beyond / (most_at_once - one_piece);
    CHECK(Held::room() == most_at_once);
    {
        std::vector<std::unique_ptr<Held>> all;
        std::size_t sum = 0;
        for (std::size_t count = 0; count < 4 * most_large; ++count) {
            const std::size_t room = Held::room();
            CHECK(room == (count < most_large ? most_at_once : one_piece));
            all.push_back(std::make_unique<Held>());
            all.back()->append(std::string(room, 'x'));
            sum += room;
        }
        CHECK(sum <= all.size() * one_piece + most_beyond);
        all.front()->take(most_at_once - 1); // its memory is still there
        CHECK(Held::room() == one_piece);
        all.front()->take(1);
        CHECK(all.front()->is_empty());
        CHECK(Held::room() == most_at_once);
    }
    CHECK(Held::room() == most_at_once);
}

TEST_CASE("a side that takes nothing makes all relays read no more than pieces, until it is gone")
{
    using Size = boost::asio::socket_base::receive_buffer_size;
    Held others; // so much that one more relay with more than a piece is too much
    others.append(std::string(one_piece + most_beyond - (most_at_once - one_piece), 'x'));
    CHECK(Held::room() == most_at_once);

    boost::asio::io_context blocking;
    boost::asio::io_context loop(1);
    const auto connected = [&](tcp::socket &other, Size size) {
        tcp::acceptor acceptor(blocking, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
        acceptor.set_option(size);
        other.open(tcp::v4());
        other.set_option(Size(4096));
        other.connect(acceptor.local_endpoint());
        tcp::socket accepted(loop);
        acceptor.accept(accepted);
        return accepted;
    };
    tcp::socket session(blocking);
    tcp::socket outside(blocking);
    RelaySetup setup{connected(session, Size(4096)), connected(outside, Size(1 << 20))};
    setup.session.set_option(boost::asio::socket_base::send_buffer_size(4096));
    setup.idle = std::chrono::seconds(30);
    outside.non_blocking(true);
    error_code problem;
    const std::string piece(one_piece, 'x');
    while (!problem)
        outside.write_some(boost::asio::buffer(piece), problem);
    start_relay(std::move(setup));
    while (Held::room() == most_at_once && loop.run_one_for(std::chrono::seconds(5)) > 0) {
    }
    CHECK(Held::room() == one_piece);
    session.close();
    outside.close();
    loop.run();
    CHECK(Held::room() == most_at_once);
}

TEST_CASE("a denial is told at once, and the same ones of a second later, together")
{
    auto [theirs, ours] = make_packet_pipe();
    boost::asio::io_context loop;
    Denials denials(loop, ours);
    const auto told = [&channel = theirs] {
        const auto packet = read_packet(channel, in_seconds(5));
        REQUIRE(packet);
        return std::get<GateDenial>(decode_gate_message(*packet));
    };
    for (int count = 0; count < 3; ++count)
        denials.report({DenialKind::tunnel, "a.example", 443, DenialReason::no_rule, 1, "p:1"});
    denials.report({DenialKind::tunnel, "b.example", 443, DenialReason::no_rule, 1, {}});
    CHECK(told().count == 1);
    CHECK(told().host == "b.example");
    loop.run(); // until nothing more is counted
    const GateDenial together = told();
    CHECK(together.host == "a.example");
    CHECK(together.count == 2);
    CHECK(together.where == "p:1");
}

TEST_CASE("what was counted is told before the end, and not twice")
{
    auto [theirs, ours] = make_packet_pipe();
    boost::asio::io_context loop;
    Denials denials(loop, ours);
    for (int count = 0; count < 3; ++count)
        denials.report({DenialKind::tunnel, "a.example", 443, DenialReason::no_rule, 1, {}});
    denials.tell_rest();
    denials.tell_rest();
    ours.reset();
    std::vector<std::uint64_t> counts;
    while (const auto packet = read_packet(theirs, in_seconds(5)))
        counts.push_back(std::get<GateDenial>(decode_gate_message(*packet)).count);
    CHECK(counts == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("denials of a second beyond a number are counted without their hosts")
{
    auto [theirs, ours] = make_packet_pipe();
    boost::asio::io_context loop;
    Denials denials(loop, ours);
    for (std::size_t count = 0; count < 2 * denials_a_second; ++count)
        denials.report({DenialKind::transparent, std::to_string(count) + ".example", 443, DenialReason::no_rule, 1, {}});
    loop.run();
    ours.reset();
    std::uint64_t hosts = 0;
    std::uint64_t others = 0;
    while (const auto packet = read_packet(theirs, in_seconds(5))) {
        const auto denial = std::get<GateDenial>(decode_gate_message(*packet));
        (denial.host.empty() ? others : hosts) += denial.count;
    }
    CHECK(hosts == denials_a_second);
    CHECK(others == denials_a_second);
}

TEST_CASE("a denial in words says what would change it")
{
    const std::string text = text_of_denial({DenialKind::tunnel, "a.example", 443, DenialReason::other_port, 1, "policy.yaml:3"});
    CHECK(text.find("a.example:443 is denied") == 0);
    CHECK(text.find("policy.yaml:3") != std::string::npos);
    CHECK(text.find("'network.hosts'") != std::string::npos);
    CHECK(text_of_denial({DenialKind::tunnel, {}, 0, DenialReason::malformed, 1, {}}).find("The connection is denied") == 0);
}

} // namespace relay_test
