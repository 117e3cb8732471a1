// The seam by which attack tests take one defence out, to show that the attack then works. It exists only in builds with -Dtest_seams=true.
#pragma once

#include "test_seams.hpp"

namespace pi_agent {

#if PI_AGENT_TEST_SEAMS
// False when /etc/pi-agent/test-without names this defence on a line of its own. Such a build is never installed outside the test machine.
bool defence_is_on(const char *name);
#else
constexpr bool defence_is_on(const char * /*name*/) noexcept
{
    return true;
}
#endif

} // namespace pi_agent
