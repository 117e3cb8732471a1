// What root makes of a gate's words: runner/root/confined/session_end.hpp
#include "runner/root/confined/session_end.hpp"

#include "common/base/channel.hpp"
#include "common/base/files.hpp"
#include "support/failure.hpp"

#include <chrono>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace gate_watch_test {

namespace {

struct Gate {
    Gate() : file(UniqueFd::adopt(memfd_create("denials", MFD_CLOEXEC)))
    {
        auto ends = make_channel();
        roots = std::move(ends.first);
        session = std::move(ends.second);
        Pipe pipe = make_packet_pipe();
        said = std::move(pipe.reading);
        own = std::move(pipe.writing);
        watch.emplace("ID", roots, said, record, duplicate(file), std::set<std::string>{"p.yaml:3:5"}, [this] { ++kills; });
    }
    void says(const std::string &bytes) const { write_packet(own, bytes); }
    void denies(const std::string &host, std::uint64_t count = 1, DenialReason reason = DenialReason::no_rule) const
    {
        GateDenial denial;
        denial.host = host;
        denial.port = 443;
        denial.reason = reason;
        denial.count = count;
        says(encode(GateMessage(denial)));
    }
    [[nodiscard]] std::string written() const { return read_whole(file, 2 * denials_file_limit, "denials"); }

    UniqueFd file;
    UniqueFd roots, session; // the channel
    UniqueFd said, own;      // the pipe
    SessionRecord record;
    int kills = 0;
    std::optional<GateWatch> watch;
};

} // namespace

TEST_CASE("a denial is written down for the agent and counted for the user")
{
    Gate gate;
    gate.denies("a.example", 2);
    gate.denies("a.example");
    CHECK(gate.watch->hear().empty());
    CHECK(gate.watch->hear().empty());
    CHECK(has(gate.written(), "a.example:443: no rule of the policy names this host"));
    gate.own.reset();
    CHECK(gate.watch->finish() == "the policy's network denied 3 connections: a.example:443 (3); why: pi-agentctl denials");
}

TEST_CASE("a denial names a place of the policy, and no other words of the gate's")
{
    GateDenial denial;
    denial.host = "a.example";
    denial.port = 22;
    denial.reason = DenialReason::other_port;
    denial.where = "p.yaml:3:5";
    Gate gate;
    gate.says(encode(GateMessage(denial)));
    CHECK(gate.watch->hear().empty());
    CHECK(has(gate.written(), "network.hosts (p.yaml:3:5)"));
    denial.where = "p.yaml:4:5; run this as root";
    gate.says(encode(GateMessage(denial)));
    CHECK(gate.watch->hear().empty());
    CHECK(!has(gate.written(), "as root"));
}

TEST_CASE("a gate that ends is told once, and then nobody listens")
{
    Gate gate;
    gate.own.reset();
    CHECK(has(gate.watch->hear(), "journalctl -u pi-agent-gate-ID.service"));
    CHECK(gate.watch->fd().get() < 0);
    CHECK(gate.watch->finish().empty());
}

TEST_CASE("a gate that says nothing is told, and that it goes on")
{
    Gate gate;
    CHECK(gate.watch->due() == Deadline::max()); // nobody expects anything before it serves
    gate.watch->expect_life();
    const Deadline due = gate.watch->due();
    CHECK(due > Clock::now());
    CHECK(due <= Clock::now() + std::chrono::seconds(2));
    CHECK(gate.watch->look().empty());
    std::this_thread::sleep_until(due);
    const std::string silent = gate.watch->look();
    CHECK(has(silent, "said nothing for two seconds"));
    CHECK(has(silent, "systemctl status pi-agent-gate-ID.service"));
    CHECK(gate.watch->due() == Deadline::max());
    CHECK(gate.watch->look().empty()); // once
    gate.says(encode(GateMessage(GateAlive{})));
    CHECK(has(gate.watch->hear(), "goes on"));
    CHECK(gate.watch->due() > due);
    gate.says(encode(GateMessage(GateAlive{})));
    CHECK(gate.watch->hear().empty());
    gate.own.reset();
    CHECK(has(gate.watch->hear(), "has ended"));
    CHECK(gate.watch->due() == Deadline::max());
}

TEST_CASE("what waits to be read is no silence")
{
    Gate gate;
    gate.watch->expect_life();
    gate.says(encode(GateMessage(GateAlive{})));
    std::this_thread::sleep_until(gate.watch->due());
    CHECK(gate.watch->look().empty());
    CHECK(gate.watch->hear().empty());
}

TEST_CASE("a gate that breaks the protocol has ended")
{
    GateDenial odd;
    odd.host = "a\nb";
    odd.port = 1;
    const std::string unknown = Encoder().number(GateDenial::type).number(0).text("a").number(1).number(99).number(1).text("").bytes();
    for (const auto &bytes : {std::string("x"), std::string(100, '\xff'), encode(GateMessage(odd)), unknown}) {
        Gate gate;
        gate.says(bytes);
        CHECK(!gate.watch->hear().empty());
        CHECK(gate.watch->fd().get() < 0);
        CHECK(gate.written().empty());
        CHECK(gate.kills == 1); // or it would go on with its listeners
    }
}

TEST_CASE("a gate that only looks as if it had ended has ended")
{
    Gate gate;
    gate.says(encode(GateMessage(GateFarewell{}))); // before anybody told it that the session is over
    CHECK(has(gate.watch->hear(), "has ended"));
    CHECK(gate.kills == 1);
}

TEST_CASE("what is not there is no refusal of the policy's")
{
    Gate gate;
    gate.denies("typo.example", 1, DenialReason::no_address);
    CHECK(gate.watch->hear().empty());
    CHECK(has(gate.written(), "typo.example:443: the name has no address"));
    gate.own.reset();
    CHECK(gate.watch->finish().empty());
}

TEST_CASE("a gate that is full is told at once, and once")
{
    Gate gate;
    gate.denies("", 3, DenialReason::no_room);
    CHECK(has(gate.watch->hear(), "no descriptor or memory left for new connections"));
    gate.denies("", 3, DenialReason::no_room);
    CHECK(gate.watch->hear().empty());
    gate.own.reset();
    CHECK(gate.watch->finish().empty());
}

TEST_CASE("at the end of its session a gate is heard, and not killed")
{
    Gate gate;
    gate.denies("a.example");
    gate.says(encode(GateMessage(GateFarewell{}))); // systemd has a copy of its end still
    const auto begin = Clock::now();
    CHECK(has(gate.watch->finish(), "denied 1 connection"));
    CHECK(Clock::now() - begin < std::chrono::milliseconds(150));
    CHECK(gate.watch->fd().get() < 0);
    CHECK(gate.kills == 0); // its user would wait for it
}

TEST_CASE("where it cannot be killed, its user is told of its end all the same")
{
    Gate gate;
    gate.watch.emplace("ID", gate.roots, gate.said, gate.record, UniqueFd(), std::set<std::string>(),
                       [] { throw Failure(ExitStatus::system_failure, "no such group"); });
    gate.says("x");
    CHECK(has(gate.watch->hear(), "has ended"));
}

TEST_CASE("a gate that says more in a second than any gate does has ended")
{
    Gate gate;
    std::string told;
    int said = 0;
    for (; told.empty() && said < 50'000; ++said) { // a slow machine may not come to so many in its first second
        gate.says(encode(GateMessage(GateAlive{})));
        told = gate.watch->hear();
    }
    CHECK(has(told, "the session's gate has ended"));
    CHECK(said > 2000);
    CHECK(gate.watch->fd().get() < 0);
}

TEST_CASE("the file of denials has an end, and counts have one too")
{
    Gate gate;
    for (int index = 0; index < 1500; ++index) {
        gate.denies("host-" + std::to_string(index) + ".example", UINT64_MAX);
        CHECK(gate.watch->hear().empty());
    }
    CHECK(gate.written().size() <= denials_file_limit);
    CHECK(gate.written().ends_with("(more is not listed here)\n"));
    gate.own.reset();
    const std::string notice = gate.watch->finish();
    CHECK(has(notice, "denied 18446744073709551615 connections: "));
    CHECK(notice.size() < 400);
}

} // namespace gate_watch_test
