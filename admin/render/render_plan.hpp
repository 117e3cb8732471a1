// What a start of pi in a directory would be, as far as another engine must know, and whether the engine can do all of that.
#pragma once

#include "common/base/fd.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/env_file.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/view/root_tree.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// --- What was found on this host, by the same steps as a start of pi.

// What a rendering may show.
struct RenderFound {
    Account user;
    Account agent;
    std::string tree;                        // what the session shows: the root or the repository, canonical
    std::string below;                       // the working directory beneath it
    std::vector<Gid> groups;                 // those that granted what is shown
    std::vector<std::string> beside;         // git directories of the repository that are elsewhere
    std::map<std::string, PointKind> points; // what is protected, relative to the tree, and what is above it
    std::vector<std::string> host_variables; // where the user's own files set some
    std::uint64_t host_memory = 0;
    std::string image;
    std::vector<std::string> links = {};   // of `points`, the symlinks
    std::vector<std::string> mounts = {};  // file systems in the tree, which the runner covers; relative to it
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

// For a variable that names files of certificates: who shows these files to the agent at the path that the variable says. A session gets a
// copy of what it is not shown; a rendering has no copies.
enum class CertificatePlace {
    nobody,
    host_view,  // engines that show the host's programs and /etc
    view_paths, // engines that mount from this host
    workspace,  // all engines: in the home or the project
};

struct RenderedCertificates {
    std::string name; // of the variable
    std::string key;  // of the policy, that sets it
    Position where;
    CertificatePlace place;
};

struct RenderPlan : RenderFound {
    std::string name; // of the unit, container or Job: a DNS label
    Policy policy;
    AccessRules rules;
    std::string place;     // of the tree, inside
    std::string directory; // where the agent starts, inside
    std::string started;   // on the host: where a user would type pi
    std::string home;
    Environment variables; // without those of the files
    std::vector<RenderedEnvFile> env_files;
    std::vector<RenderedCertificates> certificates;
};

// Pure.
RenderPlan plan_rendering(const Policy &policy, const AccessRules &rules, const RenderFacts &facts);

// Where a session has its temporary files.
constexpr const char *temporary_directories[] = {"/tmp", "/var/tmp"};

// What an engine on this host mounts for a rendered session, from the host's own files.
struct EngineMount {
    std::string source; // on the host
    std::string target; // inside
    bool read_only;
    bool of_project; // the user's files, shown as the agent's
};

// In the order in which they are mounted over each other.
std::vector<EngineMount> mounts_of(const RenderPlan &plan);

// Ids of the project's files, and what they are inside: as in a local session the user's and the agent's swapped, all others as they are
// (runner/root/mount/mounts.hpp). `range` takes the first id on disk, the first inside, and how many there are.
std::string swapped_ids(std::uint32_t user, std::uint32_t agent, const char *range, const char *between);

// --- The engines that a plan can be written for, and whether one of them can do all that the plan says.
enum class RenderTarget { kubernetes, podman, quadlet, systemd, slurm };

const char *to_string(RenderTarget target);

// Throws PolicyError with every key of the policy that `target` cannot honour, and Failure(unavailable) for a name that cannot be written
// down for it. Restrictions, and what the policy names, are demands; what the runner brings by default is not a demand.
void require_honoured(RenderTarget target, const RenderPlan &plan);

} // namespace pi_agent
