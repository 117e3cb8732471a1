// The system-call filter of a session as a profile for container engines.
#pragma once

#include <string>

namespace pi_agent {

// JSON in the form of the OCI runtime specification (config-linux.md, Seccomp), for this program's own architecture.
std::string render_seccomp();

} // namespace pi_agent
