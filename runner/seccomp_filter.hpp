// The system call filters that pi-agent-exec installs, beside a unit's own; the one home of libseccomp (design section 5).
#pragma once

namespace pi_agent {

// Lets only the calls of call_names.hpp through, no new namespaces, no sockets but local and Internet ones, no other personality and no
// real-time scheduling: what SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and RestrictRealtime=
// (systemd.exec(5)) do for a unit, for a sandbox that no systemd makes. Before install_seccomp_filter(), which goes further. Throws
// Failure.
void install_call_filter();

// Installs it for this process and everything it starts. Throws Failure: without the filter nothing may run.
void install_seccomp_filter();

} // namespace pi_agent
