// One look at everything that a session was shown: what there would run code outside.
#pragma once

#include "common/decide/agent_places.hpp"
#include "common/policy/policy.hpp"
#include "wrapper/shown_tree.hpp"
#include "wrapper/snapshot.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct LookPlan {
    std::string root;                           // the shown root; canonical
    std::string repository;                     // below it, nearest to the working directory; searched first
    std::vector<std::string> git_directories;   // of that repository, if they are elsewhere; canonical, absolute
    std::vector<std::string> path_entries;      // of the user's PATH, inside the root; canonical, absolute
    std::string home;                           // the user's
    timespec start{};                           // before anything of the session ran
    AgentPlaces agents = {};                    // links do not leave these (common/decide/root_path.hpp)
    std::vector<std::string> read_as_user = {}; // by the next start
};

// The first look may still run when the agent starts. So anything newer than `start` does not count as old.
Snapshot look_at_doors(const LookPlan &plan, Budget &budget, bool is_first_look);

// `root` holds `cwd`; `path` is the user's PATH, whose relative entries count from `cwd`. With the scope `project` only the repository is
// shown.
LookPlan plan_look(const std::string &root, const std::string &cwd, const std::string &home, const std::string &path, ProjectScope scope);

} // namespace pi_agent
