// What root's processes of a session give up once it is prepared: capabilities, privileges by exec, system calls. After that they read for
// hours what user and agent send, so a hole in one of them should be worth less.
#pragma once

#include "common/host/identity.hpp"

namespace pi_agent {

// For good, and for everything that this process forks. Throws Failure: nothing may go on unless all of it was given up.
void confine_root(const AsRoot &root);

} // namespace pi_agent
