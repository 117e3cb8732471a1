// A session as a cluster starts it: a Job of Kubernetes; and the system-call filter for container engines.
#pragma once

#include "runner/root/view/root_tree.hpp"

#include <nlohmann/json_fwd.hpp>

#include <ostream>

namespace pi_agent {

// --- pi-agentctl render: what a start of pi would be given, written down for an engine that exists.

struct RenderOptions {
    std::string target;              // kubernetes or seccomp
    std::optional<std::string> user; // a Job wants both
    std::optional<std::string> directory;
    std::string image;
    std::string volume;                 // of workspaces; empty: the cluster's storage class
    std::vector<std::string> arguments; // the agent's
};

std::string default_image();

// For root. Anybody may ask for seccomp, which is the same everywhere.
void run_render(const RenderOptions &options, std::ostream &out);

// --- What was found on this host, by the same steps as a start of pi.

// What a rendering may show.
struct RenderFound {
    Account user, agent;
    std::string tree;                        // what the session shows: the root or the repository, canonical
    std::string below;                       // the working directory beneath it
    std::vector<Gid> groups;                 // those that granted what is shown
    std::vector<std::string> beside;         // git directories of the repository that are elsewhere
    std::map<std::string, PointKind> points; // what is protected, relative to the tree, and what is above it
    std::vector<std::string> host_variables; // where the user's own files set some
    std::string image;
    std::vector<std::string> links = {};   // of `points`, the symlinks
    std::vector<PolicyPath> missing = {};  // what a list of the policy protects and does not exist, relative to the tree
    std::vector<std::string> notices = {}; // what a start would tell the user of protected paths
};

struct RenderFacts : RenderFound {
    std::vector<EnvAssignment> managed_files; // of all env_files
    std::set<std::string> quoted_files;       // those of them that hold more than plain NAME=VALUE lines
};

// Which of these are symlinks, or are behind one. For a process of the user's.
std::vector<std::string> links_among(const std::map<std::string, PointKind> &points, FdRef top);

// --- The plan of a rendering. It holds no value of a file of variables: no rendering could show one by mistake.

struct RenderedEnvFile {
    PolicyPath file;
    std::set<std::string> names; // of the variables in it
    bool plain;                  // nothing but NAME=VALUE lines: engines read that alike
};

// A variable that names files of certificates outside of home and project. A session gets copies of these, a Job does not.
struct HostCertificates {
    std::string name; // of the variable
    std::string key;  // of the policy, that sets it
    Position where;
};

struct RenderPlan : RenderFound {
    std::string name; // of the Job: a DNS label
    Policy policy;
    AccessRules rules;
    std::string place;     // of the tree, inside
    std::string directory; // where the agent starts, inside
    std::string home;
    Environment variables; // without those of the files
    std::vector<RenderedEnvFile> env_files;
    std::vector<HostCertificates> certificates;
};

// Pure.
RenderPlan plan_rendering(const Policy &policy, const AccessRules &rules, const RenderFacts &facts);

// Throws PolicyError with every key of the policy that a Job cannot honour, and Failure(unavailable) for a name that cannot be written
// down for it. Restrictions, and what the policy names, are demands; what the runner brings by default is not a demand.
void require_honoured(const RenderPlan &plan);

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

// --- The system-call filter of a session as a profile for container engines.

// JSON in the form of the OCI runtime specification (config-linux.md, Seccomp), for this program's own architecture.
std::string render_seccomp();

// Holds when the bits of `mask` in one argument are `value`.
struct ArgumentBits {
    std::uint64_t mask, value;
    friend bool operator==(const ArgumentBits &, const ArgumentBits &) = default;
};

// By the number of the argument; all must hold. Empty: whatever the arguments are.
using PassingCondition = std::map<unsigned, ArgumentBits>;

// By the call's name: the call passes if one of the conditions holds. A call that is not here does not pass.
std::map<std::string, std::vector<PassingCondition>> passing_calls();

} // namespace pi_agent
