// A plan as a line for Slurm, for clusters whose nodes all have the product: there our own runner honours the policy.
#pragma once

#include "admin/render/render_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// `command`: the wrapper; `arguments`: the agent's.
std::string render_slurm(const RenderPlan &plan, const std::string &command, const std::vector<std::string> &arguments);

} // namespace pi_agent
