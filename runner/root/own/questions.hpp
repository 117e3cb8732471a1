// A user's question about their own sessions: the same sudo rule and the same runner as a start, and another first message.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/record.hpp"

namespace pi_agent {

// Whether the wrapper's socket already holds a question. Looks at eight bytes, takes nothing out, and does not wait: whoever asks puts the
// question there before sudo starts, and every other caller is one who starts a session.
bool holds_question(FdRef wrapper);

// Reads the question, answers it, and returns the runner's exit status. Throws nothing: what fails is the answer, and what is denied is
// recorded too.
int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

} // namespace pi_agent
