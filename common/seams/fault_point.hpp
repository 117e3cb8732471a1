// The seam by which fault tests stop a process at a named point and do something to it there. Only fault_point.cpp differs in builds with
// -Dtest_seams=true.
#pragma once

namespace pi_agent {

// Does nothing; in a build with test seams, waits as long as /etc/pi-agent/test-wait-at names this point on a line of its own, a minute
// at most, and is called so meanwhile (/proc/PID/comm, 15 bytes).
void fault_point(const char *name) noexcept;

} // namespace pi_agent
