// The programs of the host that a sandbox method runs as root.
#pragma once

#include "common/policy/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct MethodProgram {
    const char *path;
    const char *package; // of Debian's, that brings it
};

std::vector<MethodProgram> programs_of(SandboxMethod method);

// What keeps the method from this program, with the remedy; none when it is there. Throws Failure(configuration) when others than root can
// change it.
std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program);

// Throws Failure(unavailable) for the first that is missing.
void require_method_programs(SandboxMethod method);

} // namespace pi_agent
