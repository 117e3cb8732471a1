// Asking the administrator at the terminal.
#pragma once

#include <string>

namespace pi_agent {

// Returns when the answer is yes, or `yes` says so already (--yes). Throws Nothing when it is no, and Failure(usage) when nobody can be
// asked, because standard input is no terminal.
void require_consent(const std::string &question, bool yes);

// The first letter of the answer, one of `letters`; asked again until it is one. At the end of input, or where nobody can be asked, the
// last of `letters`.
char ask_letter(const std::string &question, const std::string &letters);

} // namespace pi_agent
