// The in-unit system call filter, installed by pi-agent-exec beside the unit's own; the one home of libseccomp (design section 5).
#pragma once

namespace pi_agent {

// Installs it for this process and everything it starts. Throws Failure: without the filter nothing may run.
void install_seccomp_filter();

} // namespace pi_agent
