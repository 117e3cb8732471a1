// How others than root see and end their own sessions: the runner is asked, by the same sudo rule by which pi starts it.
#pragma once

#include "runner/wire/own_messages.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// Throws Failure where nobody can ask, and Failure(denied) unless this user may: the policy authorises them, and `user`, whom the command
// line names, is themselves. `why` goes on after the command's name: "looks at the sessions of other users".
void require_own(const std::string &command, const std::optional<std::string> &user, const std::string &why);

// Root's answer. Throws the Failure that root answered, or Failure with the reason why no answer came.
OwnAnswer ask_own(const OwnQuestion &question);

} // namespace pi_agent
