// Packets over a pipe: common/base/channel.hpp
#include "common/base/channel.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace packet_pipe_test {

TEST_CASE("packets of a pipe come one by one, and then its end")
{
    Pipe pipe = make_packet_pipe();
    write_packet(pipe.writing, "one");
    write_packet(pipe.writing, std::string(pipe_packet_limit, 'x'));
    write_packet(pipe.writing, "three");
    CHECK(read_packet(pipe.reading, in_seconds(5)) == "one");
    CHECK(read_packet(pipe.reading, in_seconds(5))->size() == pipe_packet_limit);
    CHECK(read_packet(pipe.reading, in_seconds(5)) == "three");
    CHECK_THROWS_AS(read_packet(pipe.reading, Clock::now()), DeadlineExceeded);
    pipe.writing.reset();
    CHECK(!read_packet(pipe.reading, in_seconds(5)));
}

TEST_CASE("nobody waits for a reader, and there is room for a burst")
{
    Pipe pipe = make_packet_pipe();
    int written = 0;
    for (; written < 10'000; ++written)
        try {
            write_packet(pipe.writing, "x");
        } catch (const SystemFailure &failure) {
            CHECK(failure.error_number() == EAGAIN);
            break;
        }
    CHECK((written >= 60 && written < 10'000));
    CHECK_THROWS_AS(write_packet(pipe.writing, ""), Failure);
    CHECK_THROWS_AS(write_packet(pipe.writing, std::string(pipe_packet_limit + 1, 'x')), Failure);
}

TEST_CASE("what a writer makes longer than a packet is refused")
{
    const Pipe pipe = make_packet_pipe();
    REQUIRE(fcntl(pipe.writing.get(), F_SETFL, O_NONBLOCK) == 0); // without O_DIRECT
    const std::string much(2 * pipe_packet_limit, 'x');
    REQUIRE(write(pipe.writing.get(), much.data(), much.size()) == static_cast<ssize_t>(much.size()));
    CHECK_THROWS_AS(read_packet(pipe.reading, in_seconds(5)), ProtocolError);
}

} // namespace packet_pipe_test
