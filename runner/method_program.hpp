// A program of the host that a sandbox method runs as root.
#pragma once

namespace pi_agent {

// Throws Failure(unavailable) that names the package when it is missing, Failure(configuration) when others than root can change it.
void require_method_program(const char *method, const char *path, const char *package);

} // namespace pi_agent
