// Hearing and ordering the child that is the caller.
#include "runner/root/errand/receiver.hpp"

#include "runner/as_user/project.hpp"
#include "runner/wire/answer.hpp"

#include <optional>

namespace pi_agent {

Receiver::Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper)
    : child_(root, "receiver of the request", caller, {wrapper.get()},
             [&](const AsUser & /*user*/, FdRef channel) { serve_caller(caller, rules, toolchains, wrapper, channel); })
{
}

Request Receiver::request()
{
    // The child gives up first, and says why.
    return decode_request(child_.receive_long(request_patience_seconds + child_patience_seconds));
}

void Receiver::start_handover(FdRef control)
{
    send_packet(child_.channel(), "S", {control.get()}, in_seconds(child_patience_seconds));
}

ReceiverEvent Receiver::receive()
{
    try {
        const std::optional<Packet> packet = child_.receive_one();
        if (packet && packet->bytes == std::string(1, handed_over_tag)) return StdioHandedOver{};
        if (packet && packet->bytes[0] == message_tag) return packet->bytes.substr(1);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): its user may kill the child: that ends the session like the wrapper's death
    }
    return WrapperGone{};
}

} // namespace pi_agent
