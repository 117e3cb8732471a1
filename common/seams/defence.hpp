// The seam by which attack tests take one defence out, to show that the attack then works. Only defence.cpp differs in builds with
// -Dtest_seams=true: what attacks are tried on is otherwise, object for object, what is installed.
#pragma once

namespace pi_agent {

extern const bool has_test_seams; // such a build is never installed outside the test machine

// True; in a build with test seams, false when /etc/pi-agent/test-without names this defence on a line of its own.
bool defence_is_on(const char *name) noexcept;

} // namespace pi_agent
