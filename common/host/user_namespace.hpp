// Whether this process can know what is root's: in a user namespace that somebody made for a shell of theirs, it cannot.
#pragma once

#include <optional>
#include <string>

namespace pi_agent {

// Says so, and what to do, where the host's root has no number here: our own program, which is root's, seems to be nobody's then, and so
// does every file that root alone can have written. In a container with its own numbers, where root's programs are root's, nothing is
// wrong.
std::optional<std::string> problem_of_user_namespace();

} // namespace pi_agent
