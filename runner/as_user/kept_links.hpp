// Which symlinks of the user's config stay symlinks in the agent's home: those that stay in the tree that is brought there.
#pragma once

#include "common/decide/user_paths.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// A directory that is brought in as it is: the top of a source, or the target of a symlink that is followed.
struct ListedTree {
    UserPlacePtr top;
    std::string path;               // where the agent has it, relative to the source; "" for the source's own top
    std::vector<std::string> names; // how an absolute symlink may begin to mean this tree
};

// Whether the agent gets the target of a symlink as the user has it; `path` is relative to the tree.
using MayLeadTo = std::function<bool(const std::string &path)>;

// For a process of the user's. The text that the symlink at `path` of the tree gets in the agent's home: `target` itself, or for an
// absolute one the relative way. None where it leads out of the tree at any step, to nothing, or to a path that is not allowed. Only looks,
// beneath the top, and lets the kernel follow no symlink: the text of a symlink decides where the next look goes, and never leaves the
// tree.
std::optional<std::string> find_kept_link(const ListedTree &tree, const std::string &path, const std::string &target,
                                          const MayLeadTo &may_lead_to);

} // namespace pi_agent
