// A session's plan as podman's arguments (podman-run(1)). Pure, so that it can be tested and audited as a table.
#pragma once

#include "runner/plan/sandbox_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Where podman keeps what it knows of its one container: a tmpfs that only the session's unit has (unit_properties.hpp).
constexpr const char *podman_directory = "/run/pi-agent/podman";
constexpr int podman_control_fd = 3; // where the launcher finds its control socket inside

// argv of podman. `host_name` is what the kernel has. Throws Failure(internal) where a path has a character that podman would take for one
// of its own.
std::vector<std::string> podman_command(const SandboxPlan &plan, const std::string &host_name);

} // namespace pi_agent
