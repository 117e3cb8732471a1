// The engines that a plan can be written for, and whether one of them can do all that the plan says.
#pragma once

#include "admin/render/render_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

enum class RenderTarget { kubernetes, podman, quadlet, systemd, slurm };

const char *to_string(RenderTarget target);

// Throws PolicyError with every key of the policy that `target` cannot honour, and Failure(unavailable) for a name that cannot be written
// down for it. Restrictions and what the policy names are demands; what the runner brings by default is none (left_out).
void require_honoured(RenderTarget target, const RenderPlan &plan);

} // namespace pi_agent
