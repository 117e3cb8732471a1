// Roots and the agents' state as places that agents write in.
#include "common/decide/agent_places.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/decide/root_path.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <variant>

namespace pi_agent {

namespace {

// Under the scope `project` any directory below a root may have been the one that was shown, and path patterns count from there.
bool fits_from_somewhere(const std::string &pattern, std::string path, ProjectScope scope)
{
    while (!is_masked_by(pattern, path)) {
        const std::size_t slash = path.find('/');
        if (scope == ProjectScope::root || slash == std::string::npos) return false;
        path.erase(0, slash + 1);
    }
    return true;
}

} // namespace

AgentPlaces places_of_state(const Policy &policy, const AccessRules &rules, const std::vector<AgentPlace> &roots)
{
    AgentPlaces places{roots, policy.projects.shown(), policy.projects.mask};
    for (const auto &granted : rules.roots) {
        const Rules &own = rules_of(granted.spec.rules);
        if (own.scope == ProjectScope::project) places.scope = ProjectScope::project;
        if (own.mask) places.masks.insert(places.masks.end(), own.mask->begin(), own.mask->end());
    }
    struct stat facts {};
    if (stat(policy.agent.state_dir.c_str(), &facts) == 0)
        places.places.push_back({policy.agent.state_dir, facts.st_dev, facts.st_ino});
    else
        require_gone("examining " + policy.agent.state_dir); // no agent has written yet
    return places;
}

std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user)
{
    std::vector<AgentPlace> roots;
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, user);
        const auto *root = std::get_if<ResolvedRoot>(&resolved);
        if (root == nullptr) continue;
        const struct stat facts = examine(root->fd, "examining " + escape_for_display(root->path));
        roots.push_back({root->path, facts.st_dev, facts.st_ino});
    }
    return roots;
}

AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user)
{
    AgentPlaces places = places_of_state(policy, rules);
    for (auto &root : find_roots(rules, user))
        places.places.push_back(std::move(root));
    return places;
}

bool is_masked(const AgentPlaces &places, const std::string &path)
{
    if (!defence_is_on("masked-config")) return false;
    return std::any_of(places.masks.begin(), places.masks.end(), [&](const PolicyPath &mask) {
        return std::any_of(places.places.begin(), places.places.end(), [&](const AgentPlace &place) {
            return path.size() > place.path.size() && is_within(path, place.path) &&
                   fits_from_somewhere(mask.path, path.substr(place.path.size() + 1), places.scope);
        });
    });
}

} // namespace pi_agent
