// A plan for podman of this host, run by root: a command, and what a quadlet shares with it.
#pragma once

#include "admin/render/render_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

constexpr const char *seccomp_profile_path = "/etc/pi-agent/seccomp.json"; // where a rendering looks for that of render_seccomp

// `arguments`: the agent's. Both only for plans that require_honoured() has let through.
std::string render_podman(const RenderPlan &plan, const std::vector<std::string> &arguments);
std::string render_quadlet(const RenderPlan &plan, const std::vector<std::string> &arguments);

// The value of --volume for each mount, and of --tmpfs and --mount for the directories of temporary files.
std::vector<std::string> podman_volumes(const RenderPlan &plan);
std::vector<std::string> podman_temporary_options(const RenderPlan &plan);
// Options for limits.
std::vector<std::string> podman_limits(const RenderPlan &plan);
// What to know before it is started.
std::vector<std::string> podman_notes(const RenderPlan &plan);

} // namespace pi_agent
