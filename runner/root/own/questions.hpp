// A user's question about their own sessions: the sudo rule and the runner of a start, and another first message.
#pragma once

#include "runner/root/session/record.hpp"
#include "runner/wire/own_messages.hpp"

namespace pi_agent {

// Answers a user about that user's own sessions, and about nobody else's.

// The ids of `asked` that are among `own`, in that order, each once. Everything else is left out: whether it is another user's, or
// nobody's, makes no difference.
std::vector<std::string> find_own(const std::vector<std::string> &own, const std::vector<std::string> &asked);

// `caller` is who the kernel and sudo say that it is. Throws Failure for what keeps root from answering.
OwnAnswer answer_own(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question);

// A user's question about their own sessions: the same sudo rule and the same runner as a start, and another first message.

// Whether the wrapper's socket already holds a question. Looks at eight bytes, takes nothing out, and does not wait: whoever asks puts the
// question there before sudo starts, and every other caller is one who starts a session.
bool holds_question(FdRef wrapper);

// Reads the question, answers it, and returns the runner's exit status. Throws nothing: what fails is the answer, and what is denied is
// recorded too.
int answer_question(const AsRoot &root, const Account &caller, FdRef wrapper, SessionRecord &record);

} // namespace pi_agent
