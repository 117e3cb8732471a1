// A session as others start it: Kubernetes, podman, quadlet, Slurm, systemd, seccomp.
#pragma once

#include "admin/render/render_plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- pi-agentctl render: what a start of pi would be given, written down for an engine that exists.

struct RenderOptions {
    std::string target;              // of render_targets()
    std::optional<std::string> user; // each target but seccomp wants both
    std::optional<std::string> directory;
    std::string image;
    std::string volume;                 // of workspaces, for kubernetes; empty: the cluster's storage class
    std::vector<std::string> arguments; // the agent's
};

std::string default_image();

// The values of --target.
std::vector<std::string> render_targets();

// For root. Anybody may ask for seccomp, which is the same everywhere.
void run_render(const RenderOptions &options, std::ostream &out);

// --- A plan as objects of Kubernetes: a Job within the restricted Pod Security Standard, and what it needs around it.

// Where the workspaces are: nothing (the cluster's storage class), "SERVER:/EXPORT" of NFS, or "efs:FILE-SYSTEM:ACCESS-POINT". Throws
// Failure(usage) for anything else.
struct WorkspaceVolume {
    enum class Kind { storage_class, nfs, efs };
    Kind kind = Kind::storage_class;
    std::string server; // or the file system
    std::string path;   // or the access point
};
WorkspaceVolume parse_workspace_volume(const std::string &text);

// In the order in which they must be made. `arguments`: the agent's.
std::vector<nlohmann::ordered_json> kubernetes_objects(const RenderPlan &plan, const WorkspaceVolume &volume,
                                                       const std::vector<std::string> &arguments);

// The same as YAML. Only for plans that require_honoured() has let through.
std::string render_kubernetes(const RenderPlan &plan, const WorkspaceVolume &volume, const std::vector<std::string> &arguments);

// A DNS label, of the user's own.
std::string namespace_of(const RenderPlan &plan);

// --- A plan for podman of this host, run by root: a command, and what a quadlet shares with it.

constexpr const char *seccomp_profile_path = "/etc/pi-agent/seccomp.json"; // where a rendering looks for what render_seccomp makes

// `arguments`: the agent's. Both only for plans that require_honoured() has let through.
std::string render_podman(const RenderPlan &plan, const std::vector<std::string> &arguments);
std::string render_quadlet(const RenderPlan &plan, const std::vector<std::string> &arguments);

// --- The system-call filter of a session as a profile for container engines.

// JSON in the form of the OCI runtime specification (config-linux.md, Seccomp), for this program's own architecture.
std::string render_seccomp();

// Holds when the bits of `mask` in one argument are `value`.
struct ArgumentBits {
    std::uint64_t mask;
    std::uint64_t value;
    friend bool operator==(const ArgumentBits &, const ArgumentBits &) = default;
};

// By the number of the argument; all must hold. Empty: whatever the arguments are.
using PassingCondition = std::map<unsigned, ArgumentBits>;

// By the call's name: the call passes if one of the conditions holds. A call that is not here does not pass.
std::map<std::string, std::vector<PassingCondition>> passing_calls();

// --- A plan as a line for Slurm, for clusters whose nodes all have the product: there our own runner honours the policy.

// `arguments`: the agent's.
std::string render_slurm(const RenderPlan &plan, const std::vector<std::string> &arguments);

// --- A plan as a unit file, of the same properties as the transient unit of a local session (runner/plan/unit_properties.hpp).

// `arguments`: the agent's. Only for plans that require_honoured() has let through.
std::string render_systemd(const RenderPlan &plan, const std::vector<std::string> &arguments);

} // namespace pi_agent
