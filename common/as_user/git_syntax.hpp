// Git's configuration syntax, read from memory (git-config(1), Syntax).
#pragma once

#include "common/base/git_settings.hpp"

namespace pi_agent {

struct GitSettings {
    std::vector<GitSetting> list; // in order, up to the first mistake
    bool is_valid = true;         // false: git would stop at a line
};

// Bounded by its input: no file is opened, whatever `include.path` says.
GitSettings parse_git_settings(std::string_view text);

// The last value of core.worktree, as in git. Empty if it is unset or empty.
std::optional<std::string> worktree_of_config(std::string_view text);

// The settings in the output of `git config -z --get-regexp`, in their order.
std::vector<GitSetting> read_git_settings(std::string_view output);

} // namespace pi_agent
