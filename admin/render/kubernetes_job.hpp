// The Job of a rendering for Kubernetes, and the names that it shares with the objects around it.
#pragma once

#include "admin/render/render_plan.hpp"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

constexpr const char *settings_suffix = "-settings";
constexpr const char *seccomp_on_node = "pi-agent/seccomp.json"; // below the kubelet's directory of profiles

std::string namespace_of(const RenderPlan &plan);
nlohmann::ordered_json labels_of(const RenderPlan &plan);
// Of the Secret with the variables of one file of env_files.
std::string secret_name(const RenderPlan &plan, std::size_t index);

// What lies read-only in the agent's directory, by the names of files.
std::map<std::string, std::string> documents_of(const RenderPlan &plan);

nlohmann::ordered_json make_job(const RenderPlan &plan, const std::vector<std::string> &arguments);

} // namespace pi_agent
