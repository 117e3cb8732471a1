// Which links of the user's config are links in the agent's home, too: those that stay in the tree that is brought there.
#pragma once

#include "common/decide/user_paths.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// A directory that is brought in as it is: the top of a source, or what a link that is followed leads to.
struct ListedTree {
    UserPlacePtr top;
    std::string path;               // where the agent has it, relative to the source; "" for the source's own top
    std::vector<std::string> names; // what the beginning of an absolute link may call it
};

// Whether the agent gets what a link leads to as the user has it; `path` is relative to the tree.
using MayLeadTo = std::function<bool(const std::string &path)>;

// For a process of the user's. What the link at `path` of the tree, whose text is `target`, is to say in the agent's home: the same, or for
// an absolute one the way from there. None where it leads out of the tree at any step, to nothing, or to what may not be led to. Only
// looks, beneath the top and following no link by itself: the text of a link decides where the next look goes, and never leaves the tree.
std::optional<std::string> find_kept_link(const ListedTree &tree, const std::string &path, const std::string &target,
                                          const MayLeadTo &may_lead_to);

} // namespace pi_agent
