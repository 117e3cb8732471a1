// Processes by descriptor, which unlike a number never comes to mean another one (pidfd_open(2)).
#pragma once

#include "common/base/fd.hpp"

#include <sys/types.h>

namespace pi_agent {

// None when there is no such process (errno). Readable (poll(2)) once it has ended.
UniqueFd open_process(pid_t pid);

bool has_ended(FdRef process);

// One that has ended is fine. Throws SystemFailure, naming `what` was being done.
void signal_process(FdRef process, int number, const char *what);

} // namespace pi_agent
