// Takes a question about their own sessions out of the caller's socket, as the caller (runner/root/own/questions.hpp).
#pragma once

#include "common/base/fd.hpp"
#include "runner/wire/own_messages.hpp"

namespace pi_agent {

// In a child that is the caller: root never holds a descriptor of a user's (runner/as_user/project.hpp), and a question may come with some.
// Throws ProtocolError for anything but one question without a descriptor.
OwnQuestion receive_question(FdRef wrapper);

} // namespace pi_agent
