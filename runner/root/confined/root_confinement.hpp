// What root's processes of a session give up once it is prepared: capabilities, privileges by exec, system calls. From then on they hear
// what user and agent say for hours, so a hole in one of them would be worth less.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// For good, and for everything that this process forks. Throws Failure: unless all of it was given up, nothing may go on.
void confine_root(const AsRoot &root);

} // namespace pi_agent
