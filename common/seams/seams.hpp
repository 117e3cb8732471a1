// Stops at a named point, or leaves a named defence out, where a test says so: in builds with test seams alone.
#pragma once

namespace pi_agent {

// --- The seam by which attack tests take one defence out, to show that the attack then works. Only seams.cpp differs in builds with
// -Dtest_seams=true: what attacks are tried on is otherwise, object for object, what is installed.

extern const bool has_test_seams; // such a build is never installed outside the test machine

// True; in a build with test seams, false when /etc/pi-agent/test-without names this defence on a line of its own.
bool defence_is_on(const char *name) noexcept;

// --- The seam by which fault tests stop a process at a named point and do something to it there. Only seams.cpp differs in builds
// with -Dtest_seams=true.

// Does nothing. In a build with test seams, waits as long as /etc/pi-agent/test-wait-at names this point on a line of its own, a minute at
// most. Meanwhile the process has this name (/proc/PID/comm, 15 bytes).
void fault_point(const char *name) noexcept;

} // namespace pi_agent
