// Receives one question.
#include "runner/as_user/question.hpp"

#include "common/seams/seams.hpp"

#include <optional>

namespace pi_agent {

OwnQuestion receive_question(FdRef wrapper)
{
    const std::optional<Packet> packet = receive_packet(wrapper, in_seconds(1)); // it is there: root has seen its beginning
    if (!packet) throw ProtocolError("the connection was closed before a question came");
    if (!packet->fds.empty()) throw ProtocolError("a question with a descriptor was refused");
    fault_point("question-read");
    return decode_question(packet->bytes);
}

} // namespace pi_agent
