// A plan as a unit file, of the same properties as the transient unit of a local session (runner/plan/unit_properties.hpp).
#pragma once

#include "admin/render/render_plan.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// `arguments`: the agent's. Only for plans that require_honoured() has let through.
std::string render_systemd(const RenderPlan &plan, const std::vector<std::string> &arguments);

} // namespace pi_agent
