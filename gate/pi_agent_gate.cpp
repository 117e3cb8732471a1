// pi-agent-gate: stands between one session and the outside. It lives in the host's network, with listeners in the session's, and passes on
// what the policy allows. Its standard input is a channel from the runner: the order comes by it, and its end is the gate's. Its
// standard output is a pipe to the runner, for denials.
#include "gate/gate.hpp"
#include "runner/filter/seccomp_filter.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

namespace {

// A start may take minutes before the order comes: it reads the user's project and configuration. Whatever ends the runner closes the
// channel, and that ends the wait.
constexpr Deadline while_the_runner_lives = Deadline::max();

// Nothing of it is found in a core, in /proc, or by a process of the same account.
void become_opaque()
{
    const rlimit none{0, 0};
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0) throw_errno("keeping the gate's memory to itself");
}

// The resolver asks for names as they are, without the host's search list, and gives up before programs do.
void set_up_resolver()
{
    if (clearenv() != 0 || setenv("LOCALDOMAIN", ".", 1) != 0 || setenv("RES_OPTIONS", "timeout:2 attempts:2", 1) != 0)
        throw_errno("setting up the resolver");
    mallopt(M_ARENA_MAX, 1); // its threads keep no memory of their own
}

// Nothing more comes by the channel but its end. The runner then listens for a moment: the last denials are told with their counts.
void end_with_channel(boost::asio::posix::stream_descriptor &channel, FdRef runner, Denials &denials)
{
    channel.async_wait(boost::asio::posix::stream_descriptor::wait_read, [runner, &denials](const boost::system::error_code &) {
        denials.tell_rest();
        tell(runner, GateFarewell{}); // the user's pi waits for this
        std::_Exit(0);                // threads may wait for the resolver, and nothing has to be put away
    });
}

// From the loop that serves: one that hangs says nothing.
void say_alive(boost::asio::steady_timer &timer, FdRef runner)
{
    tell(runner, GateAlive{});
    timer.expires_after(gate_alive_interval);
    timer.async_wait([&timer, runner](const boost::system::error_code &problem) {
        if (!problem) say_alive(timer, runner);
    });
}

// Without unwinding: what waits in the loop holds on to the gate.
[[noreturn]] void give_up(const std::exception &failure)
{
    std::fprintf(stderr, "pi-agent-gate: %s\n", failure.what());
    const auto *known = dynamic_cast<const Failure *>(&failure);
    std::_Exit(static_cast<int>(known == nullptr ? ExitStatus::internal : known->status()));
}

void run(boost::asio::io_context &loop)
{
    try {
        loop.run();
    } catch (const std::exception &failure) {
        give_up(failure);
    }
}

} // namespace

int main()
{
    try {
        become_opaque();
        // Whoever starts it may have told it to end when its reader does.
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) throw_errno("ignoring SIGPIPE");
        set_up_resolver();
        const UniqueFd channel = UniqueFd::adopt(0);
        const UniqueFd runner = UniqueFd::adopt(1);
        const GateOrder order = receive_gate_order(channel, while_the_runner_lives);
        std::vector<ReceivedListener> listeners;
        while (listeners.size() < order.listeners)
            listeners.push_back(receive_gate_listener(channel, while_the_runner_lives));
        boost::asio::io_context loop(1);
        Gate gate(loop, runner, order);
        gate.serve_route = open_route(gate, order);
        install_gate_call_filter();
        // --- confined from here: it reads what the session sends, starts nothing, and writes no file; it opens those of the resolver, and
        // the certificates that the host trusts ---
        serve(gate, std::move(listeners));
        boost::asio::posix::stream_descriptor waiting(loop, duplicate(channel).release());
        end_with_channel(waiting, runner, gate.denials);
        write_packet(runner, encode(GateReady{}));
        boost::asio::steady_timer alive(loop);
        say_alive(alive, runner);
        run(loop);
        return 0;
    } catch (const std::exception &failure) {
        give_up(failure);
    }
}
