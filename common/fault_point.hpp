// The seam by which fault tests stop a process at a named point and do something to it there. It exists only in builds with
// -Dtest_seams=true.
#pragma once

#include "test_seams.hpp"

namespace pi_agent {

#if PI_AGENT_TEST_SEAMS
// Waits as long as /etc/pi-agent/test-wait-at names this point on a line of its own, a minute at most, and is called so meanwhile
// (/proc/PID/comm, 15 bytes).
void fault_point(const char *name);
#else
constexpr void fault_point(const char * /*name*/) noexcept {}
#endif

} // namespace pi_agent
