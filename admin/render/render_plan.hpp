// What a start of pi in a directory comes to, as far as another engine is told of it. Holds no value of a file of variables: no rendering
// could show one by mistake.
#pragma once

#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/env_file.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"
#include "runner/root/view/protect.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// --- Variables that name files of certificates: a session gets a copy of what it is not shown, and a rendering has none to give.

// By whom the agent is shown them at the path that the variable says.
enum class CertificatePlace {
    nobody,
    host_view,  // who shows the host's programs and /etc
    view_paths, // who mounts from this host
    workspace,  // everybody: in the home or the project
};

struct RenderedCertificates {
    std::string name; // of the variable
    std::string key;  // of the policy, that sets it
    Position where;
    CertificatePlace place;
};

// Pure. `project`: its place inside.
std::vector<RenderedCertificates> find_rendered_certificates(const Policy &policy, const AccessRules &rules, const EnvironmentInput &input,
                                                             const std::string &project);

// --- The plan.

// What was found on this host.
struct RenderFacts {
    Account user;
    Account agent;
    std::string tree;                // what the session shows: the root or the repository, canonical
    std::string below;               // the working directory beneath it
    std::vector<Gid> groups;         // those that granted what is shown
    std::vector<std::string> beside; // git directories of the repository that lie elsewhere
    std::map<std::string, PointKind> points;
    std::vector<EnvAssignment> managed_files; // of all env_files
    std::set<std::string> quoted_files;       // those of them that hold more than plain NAME=VALUE lines
    std::vector<std::string> host_variables;  // where the user's own files set some
    std::uint64_t host_memory = 0;
    std::string image;
    std::vector<std::string> links = {};  // of `points`, those that are symbolic links
    std::vector<std::string> mounts = {}; // file systems in the tree, which the runner covers; relative to it
    std::vector<PolicyPath> missing = {}; // what a list of the policy's own protects and is not there, relative to the tree
};

struct RenderedEnvFile {
    PolicyPath file;
    std::set<std::string> names; // of the variables in it
    bool plain;                  // nothing but NAME=VALUE lines: engines read that alike
};

struct RenderPlan {
    std::string name; // of the unit, container or Job: a DNS label
    Policy policy;
    AccessRules rules;
    Account user;
    Account agent;
    std::vector<Gid> groups;
    std::string image;
    std::string tree;      // on the host
    std::string place;     // of the same inside
    std::string directory; // where the agent starts, inside
    std::string started;   // on the host: where a user would type pi
    std::string home;
    std::map<std::string, PointKind> points; // what is protected, relative to the tree, and what is above it
    std::vector<std::string> links;
    std::vector<std::string> mounts;
    std::vector<PolicyPath> missing;
    std::vector<std::string> beside;
    Environment variables; // without those of the files
    std::vector<RenderedEnvFile> env_files;
    std::vector<std::string> host_variables;
    std::uint64_t host_memory;
    std::vector<RenderedCertificates> certificates;
};

// Pure.
RenderPlan plan_rendering(const Policy &policy, const AccessRules &rules, const RenderFacts &facts);

// What a session may have: what the policy says, or the default, of this host's memory.
std::uint64_t memory_of(const RenderPlan &plan);
std::uint64_t tasks_of(const RenderPlan &plan);

// What the runner makes anew at each start, and no rendering has: one line each.
std::vector<std::string> left_out(const RenderPlan &plan);

} // namespace pi_agent
