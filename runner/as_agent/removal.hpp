// Removing whole trees that an attacker has filled and may rearrange: by descriptor, following no link, with few descriptors at any depth.
#pragma once

#include "common/base/fd.hpp"

#include <string>

namespace pi_agent {

// Removes `name` in `parent` and, for a directory, all beneath it. A missing entry is fine. Whoever calls this owns the tree: directories
// whose rights were taken away get them back. Throws Failure when something stays.
void remove_beneath(FdRef parent, const std::string &name);

// Empties a directory in the same way. What cannot be removed keeps nothing else from being removed.
void remove_content_beneath(FdRef directory);

} // namespace pi_agent
