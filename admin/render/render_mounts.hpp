// What a rendered session sees: mounts, and the host's certificates.
#pragma once

#include "admin/render/render_plan.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// --- What an engine on this host mounts for a rendered session, from the host's own files.

struct EngineMount {
    std::string source; // on the host
    std::string target; // inside
    bool read_only;
    bool of_project; // the user's files, shown as the agent's
};

// In the order in which they lie over each other.
std::vector<EngineMount> mounts_of(const RenderPlan &plan);

// Ids of the project's files, and what they are inside: those from `on_disk` on, one by one.
struct IdRange {
    std::uint64_t on_disk;
    std::uint64_t inside;
    std::uint64_t length;
};
// As in a local session: the user's and the agent's swapped, all others as they are (runner/root/mount/id_map.hpp).
std::vector<IdRange> user_ids(const RenderPlan &plan);
std::vector<IdRange> group_ids(const RenderPlan &plan);

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

} // namespace pi_agent
