// What of a project is protected or masked, found by a child with the user's identity: root parses nothing of a repository (design rule 1).
#pragma once

#include "common/base/fields.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/as_user/shown_path.hpp"
#include "runner/plan/limits.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

constexpr std::size_t guarded_texts_limit = 2 * guard_limit;

// Of one tree. All paths are relative to it, canonical when they were found, and any bytes.
struct GuardedPaths {
    std::vector<std::string> read_only;    // what is there, links themselves included
    std::vector<std::string> placeholders; // what was not there and gets one, what is above a thing first
    std::vector<std::string> kept;         // directories that must stay where they are
    std::vector<std::string> masked;
    std::vector<std::string> notices;

    static void fields(auto &archive, auto &self)
    {
        for (auto *some : {&self.read_only, &self.placeholders, &self.kept, &self.masked, &self.notices})
            archive.bounded(*some, guarded_texts_limit);
    }
};

// What there is to search: the project, in it the repository and the working directory (both relative to it), and git directories of that
// repository elsewhere.
struct GuardedTrees {
    GuardedTree project;
    std::optional<std::string> repository;
    std::string below;
    std::vector<GuardedTree> git_directories;
};

// In the child: finds them, sends an answer for each tree, the project first, and at each order makes the placeholders of one tree and says
// which of them are there to be mounted over. Until the other end is closed.
void serve_guarded_paths(const AsUser &user, const GuardedTrees &trees, const ProjectsPolicy &policy, FdRef channel);

std::string order_for_tree(std::size_t index);

// In the parent. Throws ProtocolError for what no such child sends: the rest of the runner may take every path for one beneath its tree.
GuardedPaths decode_guarded_paths(std::string_view bytes);
std::vector<std::string> decode_paths(std::string_view bytes);

} // namespace pi_agent
