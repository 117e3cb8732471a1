// One look at everything that a session was shown: what in it would run code outside.
#pragma once

#include "common/decide/agent_places.hpp"
#include "common/policy/policy.hpp"
#include "wrapper/shown_tree.hpp"
#include "wrapper/snapshot.hpp"

#include <string>
#include <vector>

namespace pi_agent {

struct LookPlan {
    std::string root;                           // that was shown; canonical
    std::string repository;                     // beneath it, the nearest to the working directory; it is looked at first
    std::vector<std::string> git_directories;   // of that repository, where they lie elsewhere; canonical, absolute
    std::vector<std::string> path_entries;      // of the user's PATH that lie in it: canonical, absolute
    std::string home;                           // the user's
    timespec start{};                           // before anything of the session ran
    AgentPlaces agents = {};                    // where links lead nowhere else (common/decide/root_path.hpp)
    std::vector<std::string> read_as_user = {}; // by the next start
};

// The first look may still be under way when the agent starts: what it then finds younger than `start` it does not believe to be older.
Snapshot look_at_doors(const LookPlan &plan, Budget &budget, bool is_first_look);

// `root` holds `cwd`; `path` is the user's PATH, whose relative entries count from `cwd`. With the scope `project` only the repository is
// shown.
LookPlan plan_look(const std::string &root, const std::string &cwd, const std::string &home, const std::string &path, ProjectScope scope);

} // namespace pi_agent
