// A plan as objects of Kubernetes: a Job within the restricted Pod Security Standard, and what it needs around it.
#pragma once

#include "admin/render/render_plan.hpp"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pi_agent {

// Where the workspaces are: nothing (the cluster's storage class), "SERVER:/EXPORT" of NFS, or "efs:FILE-SYSTEM:ACCESS-POINT". Throws
// Failure(usage) for anything else.
struct WorkspaceVolume {
    enum class Kind { storage_class, nfs, efs };
    Kind kind = Kind::storage_class;
    std::string server; // or the file system
    std::string path;   // or the access point
};
WorkspaceVolume parse_workspace_volume(const std::string &text);

// In the order in which they are to be made. `arguments`: the agent's.
std::vector<nlohmann::ordered_json> kubernetes_objects(const RenderPlan &plan, const WorkspaceVolume &volume,
                                                       const std::vector<std::string> &arguments);

// The same as YAML. Only for plans that require_honoured() has let through.
std::string render_kubernetes(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments);

} // namespace pi_agent
