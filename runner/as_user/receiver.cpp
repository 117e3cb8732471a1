// The caller's side of a session, in a child with the caller's identity.
#include "runner/as_user/receiver.hpp"

#include "common/base/idle_memory.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/home_directories.hpp"
#include "runner/as_user/project.hpp"
#include "runner/as_user/stdio_rules.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/caller_events.hpp"
#include "runner/wire/launch_record.hpp"

#include <array>
#include <poll.h>

namespace pi_agent {

namespace {

constexpr int handover_patience_seconds = 10;

void send_event(FdRef channel, char tag, std::string_view bytes = {}, const std::vector<int> &fds = {})
{
    send_answer(channel, std::string(1, tag).append(bytes), fds);
}

// The runner's only order: the control socket of pi-agent-exec. False when the runner is gone.
bool obey(FdRef channel, std::array<UniqueFd, 3> &stdio)
{
    const std::optional<Packet> order = receive_packet(channel, in_seconds(0));
    if (!order || order->fds.size() != 1) return false;
    fault_point("handing-stdio");
    send_stdio(order->fds[0], stdio, in_seconds(handover_patience_seconds));
    std::vector<int> for_root;
    for (const auto &fd : stdio)
        if (fd && !defence_is_on("root-holds-nothing")) for_root.push_back(fd.get());
    send_event(channel, handed_over_tag, {}, for_root);
    for (auto &fd : stdio)
        fd.reset(); // the agent's end of a pipe must be the last one; whatever this waits for, it is not root that waits
    return true;
}

// False when the wrapper is gone, or broke the protocol: a request has descriptors, what follows it has none.
bool relay(FdRef wrapper, FdRef channel)
{
    try {
        const std::optional<Packet> packet = receive_packet(wrapper, in_seconds(0));
        if (packet && packet->fds.empty() && packet->bytes.size() <= small_message_limit) {
            send_event(channel, message_tag, packet->bytes);
            return true;
        }
    } catch (const ProtocolError &) { // NOLINT(bugprone-empty-catch): told below
    }
    send_event(channel, gone_tag);
    return false;
}

} // namespace

void serve_caller(const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper, FdRef channel)
{
    ReceivedRequest received = receive_request(wrapper, in_seconds(request_patience_seconds));
    fault_point("request-read");
    check_stdio(received.stdio, received.request.on_terminal);
    let_pipes_be_opened(received.stdio);
    send_long_answer(channel, encode_request(received.request));
    open_as_caller(caller, rules, received.cwd, channel);
    received.cwd.reset();
    send_home(channel, find_home_directories(caller, toolchains));
    StartUpMemory memory;
    for (bool listening = true;;) {
        std::array<pollfd, 2> waits{pollfd{channel.get(), POLLIN, 0}, pollfd{listening ? wrapper.get() : -1, POLLIN, 0}};
        if (poll(waits.data(), waits.size(), memory.patience(-1)) < 0 && errno != EINTR) throw_errno("waiting for the wrapper");
        memory.look();
        if (waits[0].revents != 0) {
            if (!obey(channel, received.stdio)) return;
            memory.wait_begins();
        }
        if (waits[1].revents != 0) listening = relay(wrapper, channel);
    }
}

} // namespace pi_agent
