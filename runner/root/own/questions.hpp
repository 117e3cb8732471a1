// A user's question about their own sessions: the sudo rule and the runner of a start, and another first message.
#pragma once

#include "runner/root/session/record.hpp"
#include "runner/wire/own_messages.hpp"

namespace pi_agent {

// Whether a session of the user's own is among those that a question names, by whole ids.
bool is_asked_for(const std::string &id, const std::vector<std::string> &asked);

// Whether the wrapper's socket already holds a question. Looks at eight bytes, takes nothing out, and does not wait: whoever asks puts the
// question there before sudo starts, and every other caller is one who starts a session.
bool holds_question(FdRef wrapper);

// Reads the question, answers it, and returns the runner's exit status. Throws nothing: what fails is the answer, and what is denied is
// recorded too.
int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

} // namespace pi_agent
