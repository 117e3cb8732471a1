// Bytes with back-pressure, one way: wrapper/terminal_link.hpp
#include "wrapper/terminal_link.hpp"

#include "support/descriptors.hpp"

#include <csignal>
#include <limits>

using namespace pi_agent;
using namespace pi_agent::test;

namespace pump_test {

namespace {

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

struct Pipe {
    UniqueFd out, in;
    Pipe()
    {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
        out = UniqueFd::adopt(ends[0]);
        in = UniqueFd::adopt(ends[1]);
    }
    void put(const std::string &bytes) const
    {
        REQUIRE(::write(in.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    [[nodiscard]] std::string take() const
    {
        std::string bytes(1 << 20, '\0');
        const ssize_t count = ::read(out.get(), bytes.data(), bytes.size());
        bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return bytes;
    }
};

} // namespace

TEST_CASE("nothing is read before what was read is written")
{
    const Pipe from;
    const Pipe to;
    Pump pump;
    CHECK(pump.wants_input());
    from.put("one");
    CHECK(pump.fill(from.out) == Outcome::moved);
    CHECK(pump.fresh() == "one");
    CHECK_FALSE(pump.wants_input());
    CHECK(pump.drain(to.in, 2) == Outcome::moved);
    CHECK_FALSE(pump.wants_input());
    CHECK(pump.drain(to.in, everything) == Outcome::moved);
    CHECK(pump.wants_input());
    CHECK(to.take() == "one");
}

TEST_CASE("what is read further comes behind, and one byte of each pair is taken out")
{
    const Pipe from;
    Pump pump;
    from.put("a\r");
    CHECK(pump.fill(from.out) == Outcome::moved);
    CHECK(pump.ends_with('\r'));
    CHECK_FALSE(pump.fill_further(from.out));
    from.put("\nb\r\r\n\r\n\nc\rd\r");
    CHECK(pump.fill_further(from.out));
    pump.drop_before('\r', '\n');
    CHECK(pump.fresh() == "a\nb\r\n\n\nc\rd\r");
}

TEST_CASE("an empty source and a full sink are waited for, and nothing is lost")
{
    const Pipe from;
    const Pipe to;
    Pump pump;
    CHECK(pump.fill(from.out) == Outcome::blocked);
    const std::string chunk(4096, 'f');
    while (::write(to.in.get(), chunk.data(), chunk.size()) > 0) {
    }
    from.put("after");
    CHECK(pump.fill(from.out) == Outcome::moved);
    CHECK(pump.drain(to.in, everything) == Outcome::blocked);
    CHECK(pump.fresh() == "after");
    CHECK(to.take().size() > 0);
    CHECK(pump.drain(to.in, everything) == Outcome::moved);
    CHECK(to.take() == "after");
}

TEST_CASE("either end is told by its name")
{
    Pipe from;
    Pipe to;
    Pump pump;
    from.put("x");
    from.in.reset();
    CHECK(pump.fill(from.out) == Outcome::moved);
    to.out.reset();
    ::signal(SIGPIPE, SIG_IGN);
    CHECK(pump.drain(to.in, everything) == Outcome::ended);
    ::signal(SIGPIPE, SIG_DFL);
    pump.discard();
    CHECK(pump.fill(from.out) == Outcome::ended);
    CHECK(pump.wants_input());
}

} // namespace pump_test
