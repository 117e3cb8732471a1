// What the files of a repository ask of git that a session may not be able to do: signing, and filters that start programs.
#pragma once

#include "runner/as_user/git_paths.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct RepositorySettings {
    std::optional<bool> signs;        // commits or tags, where its own settings say so
    std::vector<std::string> filters; // that attributes name and its own settings do not define, each once
};

// In a child that is the user. Agents may have written all of it: it is read as content, within `tree`, and no git runs. `below` is the
// working directory; `git_directory` the repository's, where that is another tree. Attributes count from the repository's top down to
// `below`: looking through the whole tree costs too much. Throws Failure for what cannot be read.
RepositorySettings read_repository_settings(const GuardedTree &tree, const std::string &repository, const std::string &below,
                                            const GuardedTree *git_directory);

// The filters that a file of attributes names (gitattributes(5)).
std::vector<std::string> filters_of_attributes(std::string_view text);

} // namespace pi_agent
