// What an engine on this host mounts for a rendered session, from the host's own files.
#pragma once

#include "admin/render/render_plan.hpp"
#include "common/decide/decision.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"

#include <string>
#include <vector>

namespace pi_agent {

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
// As in a local session: the user's and the agent's swapped, all others as they are (runner/root/mount/mounts.hpp).
std::vector<IdRange> user_ids(const RenderPlan &plan);
std::vector<IdRange> group_ids(const RenderPlan &plan);

} // namespace pi_agent
