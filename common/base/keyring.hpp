// The session keyring that a process inherits of whoever started it (session-keyring(7)).
#pragma once

namespace pi_agent {

// Leaves it for a new one. 0, or an errno. Also 0 where nobody has keyrings: in a kernel without, and behind a system-call filter that
// answers every question about them with EPERM, as docker's does. Filters are inherited, so the one of this process holds what it starts,
// too.
int leave_session_keyring() noexcept;

} // namespace pi_agent
