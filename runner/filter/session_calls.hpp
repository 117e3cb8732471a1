// The filter of one session: what the policy refuses of system calls and sockets, and what it does not let through. Made at each start,
// for the filters of the build are the same for all policies.
#pragma once

#include <linux/filter.h>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What a session's own filter refuses.
struct SessionCalls {
    std::vector<std::string> refused = {}; // by name: EPERM; what this machine does not have needs no refusal
    bool keeps_personality = false;        // personality(2), except the usual one and the question which it is: EPERM
    std::optional<unsigned> families = {}; // socket(2) of a family that is not in the set (address_families): EAFNOSUPPORT
};

// A program of the kernel's (seccomp(2)); without instructions where nothing is refused. Calls of another architecture end the process.
std::vector<sock_filter> session_call_program(const SessionCalls &calls);

} // namespace pi_agent
