// What of a project is protected or masked, found by a child with the user's identity: root parses nothing of a repository (design rule 1).
#pragma once

#include "common/identity.hpp"
#include "common/policy.hpp"
#include "runner/shown_path.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// All paths are relative to the shown project, canonical when they were found, and any bytes.
struct GuardedPaths {
    std::vector<std::string> read_only;    // what is there, links themselves included
    std::vector<std::string> placeholders; // what was not there and gets one, what is above a thing first
    std::vector<std::string> masked;
    std::vector<std::string> notices;
};

// In the child: finds them, sends them, and at each order makes the placeholders and says which of them are there to be mounted over. Until
// the other end is closed.
void serve_guarded_paths(const AsUser &user, const ShownTree &tree, const std::string &below, const ProjectsPolicy &policy, FdRef channel);

// In the parent. Throws ProtocolError for what no such child sends: the rest of the runner may take every path for one beneath the project.
GuardedPaths decode_guarded_paths(std::string_view bytes);
std::vector<std::string> decode_paths(std::string_view bytes);

} // namespace pi_agent
