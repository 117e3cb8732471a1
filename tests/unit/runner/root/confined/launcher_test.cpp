// What root hears of a launcher, and that it knows one that passes nothing on: runner/root/confined/session_end.hpp
#include "runner/root/confined/session_end.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <thread>

using namespace pi_agent;

namespace launcher_test {

namespace {

struct Pair {
    Pair() : ends(make_channel()), launcher(ends.first) {}
    void says(std::string_view bytes) const { send_packet(ends.second, bytes, {}, in_seconds(1)); }

    std::pair<UniqueFd, UniqueFd> ends;
    Launcher launcher;
};

} // namespace

TEST_CASE("a launcher is heard until it closes or breaks the protocol")
{
    Pair pair;
    pair.says(encode(ExecMessage(ExecReady{})));
    CHECK(std::holds_alternative<ExecReady>(pair.launcher.receive().value()));
    CHECK(pair.launcher.fd().get() == pair.ends.first.get());
    SUBCASE("closes")
    {
        pair.ends.second.reset();
    }
    SUBCASE("breaks it")
    {
        pair.says("x");
    }
    CHECK_FALSE(pair.launcher.receive());
    CHECK_FALSE(pair.launcher.is_open());
    CHECK(pair.launcher.fd().get() == -1);
    CHECK_NOTHROW(pair.launcher.send(ContinueAgent{}));
}

TEST_CASE("an answer is expected to a signal that asks for the end, and to no other message")
{
    Pair pair;
    for (const WrapperMessage &message : {WrapperMessage(ForwardSignal{SIGUSR2}), WrapperMessage(ForwardSignal{SIGTSTP}),
                                          WrapperMessage(ContinueAgent{true}), WrapperMessage(TerminalReady{})}) {
        pair.launcher.expect_answer(message);
        CHECK(pair.launcher.answer_due() == Deadline::max());
        CHECK_FALSE(pair.launcher.take_answer());
    }
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
        pair.launcher.expect_answer(ForwardSignal{number});
        CHECK(pair.launcher.answer_due() <= in_seconds(1));
        CHECK_FALSE(pair.launcher.take_unanswered());
        CHECK(pair.launcher.take_answer());
        CHECK(pair.launcher.answer_due() == Deadline::max());
        CHECK_FALSE(pair.launcher.take_answer());
    }
}

TEST_CASE("the first signal without an answer is told once, when it is late, unless something of the launcher's is still unread")
{
    Pair pair;
    pair.launcher.expect_answer(ForwardSignal{SIGTERM});
    pair.launcher.expect_answer(ForwardSignal{SIGINT});
    std::this_thread::sleep_until(pair.launcher.answer_due());
    SUBCASE("silent")
    {
        CHECK(pair.launcher.take_unanswered() == SIGTERM);
    }
    SUBCASE("closed")
    {
        pair.ends.second.reset();
        pair.launcher.receive();
        CHECK(pair.launcher.take_unanswered() == SIGTERM);
    }
    SUBCASE("unread")
    {
        pair.says(encode(ExecMessage(SignalHeard{})));
        CHECK_FALSE(pair.launcher.take_unanswered());
        CHECK(std::holds_alternative<SignalHeard>(pair.launcher.receive().value()));
        CHECK(pair.launcher.take_answer());
    }
    CHECK_FALSE(pair.launcher.take_unanswered());
}

} // namespace launcher_test
