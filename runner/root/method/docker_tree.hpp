// The session's root directory in a container whose root is an image's: what is bound over it, and the mount points for that.
#pragma once

#include "runner/root/method/sandbox.hpp"

#include <vector>

namespace pi_agent {

// Every directory at the top of the plan's tree but those that the plan's binds or docker fill, links to programs as the directories they
// lead to, and the plan's late files, which are made empty here. Makes the places of the plan's binds in the tree.
std::vector<Bind> show_tree(const SandboxPlan &plan);

} // namespace pi_agent
