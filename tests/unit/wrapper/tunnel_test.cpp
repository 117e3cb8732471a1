// Streams and messages over one pair of byte streams: wrapper/session_client.hpp; and a terminal as packets: wrapper/terminal_link.hpp
#include "wrapper/session_client.hpp"

#include "wrapper/terminal_link.hpp"

#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>

using namespace pi_agent;

namespace tunnel_test {

namespace {

// Two tunnels that are each other's other side.
// As on both sides of the product: a reader that is gone is an error, and no signal.
class WithoutPipeSignal {
public:
    WithoutPipeSignal() : before_(::signal(SIGPIPE, SIG_IGN)) {}
    WithoutPipeSignal(const WithoutPipeSignal &) = delete;
    WithoutPipeSignal &operator=(const WithoutPipeSignal &) = delete;
    ~WithoutPipeSignal() { ::signal(SIGPIPE, before_); }

private:
    sighandler_t before_;
};

struct Pair {
    WithoutPipeSignal without_signal{};
    Pipe forth = make_pipe();
    Pipe back = make_pipe();
    Tunnel here{std::move(back.reading), std::move(forth.writing)};
    std::optional<Tunnel> there{std::in_place, std::move(forth.reading), std::move(back.writing)};
    std::vector<std::string> heard_here, heard_there;

    void serve(int rounds = 50)
    {
        for (int round = 0; round < rounds; ++round) {
            here.serve([&](const std::string &message) { heard_here.push_back(message); });
            if (there) there->serve([&](const std::string &message) { heard_there.push_back(message); });
        }
    }
};

std::string drained(FdRef fd)
{
    std::string all;
    std::string piece(65536, '\0');
    ssize_t count = 0;
    while ((count = ::read(fd.get(), piece.data(), piece.size())) > 0)
        all.append(piece.data(), static_cast<std::size_t>(count));
    return all;
}

Pipe nonblocking_pipe()
{
    Pipe pipe = make_pipe(O_NONBLOCK);
    REQUIRE(::fcntl(pipe.writing.get(), F_SETFL, O_NONBLOCK) == 0);
    return pipe;
}

std::unique_ptr<StreamEnd> end_of(UniqueFd fd, DescriptorEnd::For purpose)
{
    return std::make_unique<DescriptorEnd>(std::move(fd), purpose);
}

} // namespace

TEST_CASE("messages arrive whole and in their order, with any bytes")
{
    Pair pair;
    const std::string large(3UL * 1024 * 1024, '\n');
    pair.here.say("one");
    pair.here.say("");
    pair.here.say(large);
    pair.here.say(std::string("\0\nd", 3));
    pair.there->say("back");
    pair.serve(500);
    REQUIRE(pair.heard_there.size() == 4);
    CHECK((pair.heard_there[0] == "one" && pair.heard_there[1].empty() && pair.heard_there[3] == std::string("\0\nd", 3)));
    CHECK(pair.heard_there[2] == large);
    CHECK(pair.heard_here == std::vector<std::string>{"back"});
}

TEST_CASE("a stream arrives byte for byte, and then its end")
{
    Pair pair;
    Pipe source = nonblocking_pipe();
    Pipe sink = nonblocking_pipe();
    pair.here.attach(Stream::output, Tunnel::Way::here_to_there, end_of(std::move(source.reading), DescriptorEnd::For::reading));
    pair.there->attach(Stream::output, Tunnel::Way::there_to_here, end_of(std::move(sink.writing), DescriptorEnd::For::writing));
    std::string sent;
    std::string seen;
    for (int round = 0; round < 100; ++round) {
        const std::string piece(static_cast<std::size_t>(1 + round * 397 % 30000), static_cast<char>(round));
        const ssize_t count = ::write(source.writing.get(), piece.data(), piece.size());
        if (count > 0) sent += piece.substr(0, static_cast<std::size_t>(count));
        pair.serve(3);
        seen += drained(sink.reading);
    }
    source.writing.reset();
    for (int round = 0; round < 50; ++round) {
        pair.serve(3);
        seen += drained(sink.reading);
    }
    CHECK(sent == seen);
    CHECK(sent.size() > 100000);
    CHECK(pair.here.has_read_all());
    char byte = 0;
    CHECK(::read(sink.reading.get(), &byte, 1) == 0); // closed, not only empty
}

TEST_CASE("a reader that does not read holds up its own stream, and nothing else")
{
    Pair pair;
    Pipe endless = nonblocking_pipe();
    Pipe unread = nonblocking_pipe();
    pair.here.attach(Stream::output, Tunnel::Way::here_to_there, end_of(std::move(endless.reading), DescriptorEnd::For::reading));
    pair.there->attach(Stream::output, Tunnel::Way::there_to_here, end_of(std::move(unread.writing), DescriptorEnd::For::writing));
    const std::string block(4096, 'x');
    std::size_t taken = 0;
    for (int round = 0; round < 2000; ++round) {
        const ssize_t count = ::write(endless.writing.get(), block.data(), block.size());
        taken += count > 0 ? static_cast<std::size_t>(count) : 0;
        pair.serve(1);
    }
    CHECK(taken < 2UL * 1024 * 1024);
    CHECK(!pair.there->has_written_all());
    pair.here.say("through");
    pair.serve();
    CHECK(pair.heard_there == std::vector<std::string>{"through"});
}

TEST_CASE("who writes to a reader that is gone learns it")
{
    Pair pair;
    Pipe source = nonblocking_pipe();
    Pipe sink = nonblocking_pipe();
    pair.here.attach(Stream::error, Tunnel::Way::here_to_there, end_of(std::move(source.reading), DescriptorEnd::For::reading));
    pair.there->attach(Stream::error, Tunnel::Way::there_to_here, end_of(std::move(sink.writing), DescriptorEnd::For::writing));
    sink.reading.reset();
    CHECK(::write(source.writing.get(), "x", 1) == 1);
    pair.serve();
    CHECK((::write(source.writing.get(), "x", 1) == -1 && errno == EPIPE));
}

TEST_CASE("what others keep open ends when it has been silent for a moment, behind all that was written")
{
    Pair pair;
    Pipe source = nonblocking_pipe();
    pair.here.attach(Stream::output, Tunnel::Way::here_to_there, end_of(std::move(source.reading), DescriptorEnd::For::reading));
    CHECK(::write(source.writing.get(), "last", 4) == 4);
    pair.here.finish();
    const auto begun = Clock::now();
    while (!pair.here.has_read_all())
        pair.serve(1);
    CHECK(Clock::now() - begun >= std::chrono::milliseconds(90));
}

TEST_CASE("who falls silent has said what it said, takes what comes, and reads nothing more")
{
    Pair pair;
    Pipe typed = nonblocking_pipe();
    Pipe from = nonblocking_pipe();
    Pipe shown = nonblocking_pipe();
    pair.here.attach(Stream::input, Tunnel::Way::here_to_there, end_of(duplicate(typed.reading), DescriptorEnd::For::reading));
    pair.here.attach(Stream::output, Tunnel::Way::there_to_here, end_of(std::move(shown.writing), DescriptorEnd::For::writing));
    pair.there->attach(Stream::output, Tunnel::Way::here_to_there, end_of(std::move(from.reading), DescriptorEnd::For::reading));
    pair.here.say("last");
    pair.here.fall_silent();
    pair.here.say("more");
    CHECK(::write(typed.writing.get(), "ahead", 5) == 5);
    CHECK(::write(from.writing.get(), "out", 3) == 3);
    pair.serve();
    CHECK(pair.heard_there == std::vector<std::string>{"last"});
    CHECK(drained(shown.reading) == "out");
    CHECK(drained(typed.reading) == "ahead");
}

TEST_CASE("the other side's end is seen, and another language is refused")
{
    Pair pair;
    pair.there.reset();
    pair.serve();
    CHECK(pair.here.has_ended());
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    Tunnel tunnel(std::move(in.reading), std::move(out.writing));
    const auto say = [&](const std::string &words) {
        REQUIRE(::write(in.writing.get(), words.data(), words.size()) == static_cast<ssize_t>(words.size()));
        tunnel.serve([](const std::string & /*message*/) {});
    };
    say("Welcome to the node!\n");
    say(std::string("\0pi-agent", 9)); // what others write before is passed over, and the greeting may come in pieces
    say(std::string("\0\n", 2));
    CHECK_THROWS_AS(say("Welcome to the node!\n"), ProtocolError);
}

TEST_CASE("who sends more than is taken, or asks for answers and reads none, is given up")
{
    const auto frame = [](char kind, Stream stream, const std::string &payload) {
        std::string bytes{kind, static_cast<char>(stream)};
        for (unsigned shift = 0; shift < 32; shift += 8)
            bytes += static_cast<char>((payload.size() >> shift) & 0xffU);
        return bytes + payload + '\n';
    };
    const auto flooded_by = [](const std::string &bytes, std::size_t times) {
        Pipe in = make_pipe();
        Pipe out = make_pipe();
        Pipe unread = nonblocking_pipe();
        Tunnel tunnel(std::move(in.reading), std::move(out.writing));
        tunnel.attach(Stream::output, Tunnel::Way::there_to_here, end_of(std::move(unread.writing), DescriptorEnd::For::writing));
        std::string next("\0pi-agent\0\n", 11);
        for (std::size_t time = 0; time < times; ++time) {
            REQUIRE(::write(in.writing.get(), next.data(), next.size()) == static_cast<ssize_t>(next.size()));
            tunnel.serve([](const std::string & /*message*/) {});
            next = bytes;
        }
    };
    CHECK_THROWS_WITH_AS(flooded_by(frame('d', Stream::output, std::string(32000, 'x')), 100),
                         "the other side of the session sends more than is taken", ProtocolError);
    std::string empty_pieces; // of a stream that nobody has, each with an answer
    while (empty_pieces.size() < 32000)
        empty_pieces += frame('d', Stream::error, "");
    CHECK_THROWS_WITH_AS(flooded_by(empty_pieces, 2000), "the other side of the session does not read what it asks for", ProtocolError);
}

TEST_CASE("a regular file is read from where it stands, and its flags stay")
{
    const UniqueFd file = UniqueFd::adopt(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    REQUIRE(file);
    REQUIRE((::write(file.get(), "onetwo", 6) == 6 && ::lseek(file.get(), 3, SEEK_SET) == 3));
    DescriptorEnd end(duplicate(file), DescriptorEnd::For::reading);
    std::string piece;
    CHECK((end.read(piece) == Outcome::moved && piece == "two"));
    CHECK(end.read(piece) == Outcome::ended);
    CHECK((::fcntl(file.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a pipe is read without waiting, and without a change for others who have it")
{
    Pipe pipe = make_pipe();
    DescriptorEnd end(duplicate(pipe.reading), DescriptorEnd::For::reading);
    std::string piece;
    CHECK(end.read(piece) == Outcome::blocked);
    CHECK((::fcntl(pipe.reading.get(), F_GETFL) & O_NONBLOCK) == 0);
    pipe.writing.reset();
    CHECK(end.read(piece) == Outcome::ended);
}

TEST_CASE("settings and sizes of a terminal arrive as they were, and nothing else is taken for them")
{
    TerminalState state;
    state.settings.c_iflag = 0x5;
    state.settings.c_oflag = 0xffffffffU;
    state.settings.c_cflag = 0xbf;
    state.settings.c_lflag = 0x8a3b;
    state.settings.c_cc[VERASE] = 8;
    state.other_foreground = true;
    const TerminalState read = decode_state(encode_state(state));
    CHECK((read.settings.c_iflag == 0x5 && read.settings.c_oflag == 0xffffffffU && read.settings.c_lflag == 0x8a3b));
    CHECK((read.settings.c_cc[VERASE] == 8 && read.other_foreground));
    const WindowSize size = decode_size(encode_size({24, 80, 7, 65535}));
    CHECK((size.rows == 24 && size.columns == 80 && size.x_pixels == 7 && size.y_pixels == 65535));
    CHECK_THROWS_AS(decode_state(encode_size(size)), ProtocolError);
    CHECK_THROWS_AS(decode_state(encode_state(state).substr(0, 20)), ProtocolError);
    CHECK_THROWS_AS(decode_size(encode_size(size) + "x"), ProtocolError);
    CHECK_THROWS_AS(decode_size(""), ProtocolError);
}

TEST_CASE("a terminal far away knows the settings that hold for each byte")
{
    auto [socket, node] = make_channel();
    DistantTerminal terminal(std::move(socket));
    Pump output;
    CHECK(terminal.fill(output) == Outcome::blocked);
    TerminalState state;
    state.settings.c_lflag = ECHO;
    send_packet(node, encode_state(state), {}, in_seconds(1));
    send_packet(node, std::string(1, bytes_tag) + "shown", {}, in_seconds(1));
    CHECK((terminal.fill(output) == Outcome::moved && output.fresh() == "shown"));
    CHECK(terminal.settings().value().c_lflag == ECHO);
    output.replace("typed");
    CHECK(terminal.drain(output) == Outcome::moved);
    CHECK(receive_packet(node, in_seconds(1)).value().bytes == std::string(1, bytes_tag) + "typed");
    terminal.resize({1, 2, 3, 4});
    CHECK(decode_size(receive_packet(node, in_seconds(1)).value().bytes).columns == 2);
    node.reset();
    CHECK(terminal.fill(output) == Outcome::ended);
}

TEST_CASE("a terminal far away that says nothing but settings keeps nobody from what else happens")
{
    auto [socket, node] = make_channel();
    DistantTerminal terminal(std::move(socket));
    constexpr int packets = 100; // which a socket holds
    for (int count = 0; count < packets; ++count)
        send_packet(node, encode_state(TerminalState{}), {}, in_seconds(1));
    Pump output;
    CHECK(terminal.fill(output) == Outcome::blocked);
    pollfd more{terminal.fd().get(), POLLIN, 0};
    CHECK(::poll(&more, 1, 0) == 1);
    send_packet(node, std::string(1, bytes_tag) + "shown", {}, in_seconds(1));
    Outcome outcome = Outcome::blocked;
    for (int count = 0; count < packets && outcome == Outcome::blocked; ++count)
        outcome = terminal.fill(output);
    CHECK((outcome == Outcome::moved && output.fresh() == "shown"));
}

TEST_CASE("a terminal far away that is full of keys is not waited for")
{
    auto [socket, node] = make_channel();
    DistantTerminal terminal(std::move(socket));
    termios first{};
    first.c_lflag = ECHO;
    REQUIRE(terminal.change_to(first));
    Pump keys;
    do
        keys.replace(std::string(terminal_bytes_limit, 'k'));
    while (terminal.drain(keys) == Outcome::moved);
    termios second{};
    CHECK(terminal.change_to(second));
    CHECK(terminal.settings().value().c_lflag == ECHO); // as the agent still has it
    node.reset();
    CHECK(!terminal.change_to(second));
}

TEST_CASE("what a carrier says first is read as it was")
{
    const Hello hello = decode_fields<Hello>(encode(Hello{"1.2", "/home/alice/\n", std::string("\0x", 2), "/usr/bin/scancel"}));
    CHECK((hello.version == "1.2" && hello.directory == "/home/alice/\n" && hello.request == std::string("\0x", 2)));
    CHECK(hello.scancel == "/usr/bin/scancel");
    CHECK_THROWS_AS(decode_fields<Hello>("something"), ProtocolError);
}

} // namespace tunnel_test
