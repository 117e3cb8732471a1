// pi-agent-gate: stands between one session and the outside. It lives in the host's network, with listeners in the session's, and passes on
// what the policy allows. Its standard input is a channel to the runner: the order comes by it, denials go by it, and its end is the
// gate's.
#include "gate/listeners.hpp"
#include "gate/route.hpp"
#include "runner/filter/seccomp_filter.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

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

std::vector<ReceivedListener> receive_listeners(FdRef channel, std::uint64_t count)
{
    std::vector<ReceivedListener> listeners;
    while (listeners.size() < count)
        listeners.push_back(receive_gate_listener(channel, while_the_runner_lives));
    return listeners;
}

// Nothing more comes by the channel but its end. The runner then listens for a moment: the last denials are told with their counts.
void end_with_channel(boost::asio::posix::stream_descriptor &channel, Denials &denials)
{
    channel.async_wait(boost::asio::posix::stream_descriptor::wait_read, [&channel, &denials](const boost::system::error_code &) {
        denials.tell_rest();
        // The user's pi waits for this. The kernel closes descriptors of an ending process last: after its memory, its threads and its
        // mounts.
        shutdown(channel.native_handle(), SHUT_RDWR);
        std::_Exit(0); // threads may wait for the resolver, and nothing has to be put away
    });
}

// From the loop that serves: one that hangs says nothing. Nothing waits for a runner that does not read.
void say_alive(boost::asio::steady_timer &timer, FdRef channel)
{
    try {
        send_packet(channel, encode(GateAlive{}), {}, Clock::now());
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the next is as good, and a runner that is gone ends this elsewhere
    }
    timer.expires_after(gate_alive_interval);
    timer.async_wait([&timer, channel](const boost::system::error_code &problem) {
        if (!problem) say_alive(timer, channel);
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
        set_up_resolver();
        const UniqueFd channel = UniqueFd::adopt(0);
        const GateOrder order = receive_gate_order(channel, while_the_runner_lives);
        std::vector<ReceivedListener> listeners = receive_listeners(channel, order.listeners);
        boost::asio::io_context loop(1);
        Gate gate(loop, channel, order);
        gate.serve_route = open_route(gate, order);
        install_gate_call_filter();
        // --- confined from here: it reads what the session sends, starts nothing, and writes no file; it opens those of the resolver, and
        // the certificates that the host trusts ---
        serve(gate, std::move(listeners));
        boost::asio::posix::stream_descriptor waiting(loop, duplicate(channel).release());
        end_with_channel(waiting, gate.denials);
        send_packet(channel, encode(GateReady{}), {}, while_the_runner_lives);
        boost::asio::steady_timer alive(loop);
        say_alive(alive, channel);
        run(loop);
        return 0;
    } catch (const std::exception &failure) {
        give_up(failure);
    }
}
