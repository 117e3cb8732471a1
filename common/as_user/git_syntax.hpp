// Git's settings: which of them make git run a program, and the syntax of their files, read from memory (git-config(1), Syntax).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct GitSetting {
    std::string name;                 // "section.key" or "section.Sub.Section.key", lower case, except the part between
    std::optional<std::string> value; // empty: only the name, which means true to git
    friend bool operator==(const GitSetting &, const GitSetting &) = default;
    static void fields(auto &archive, auto &self) { archive(self.name, self.value); }
};

// "section.key", without the part between; empty if this is not the name of a setting.
std::string git_rule(std::string_view name);

// The part between; may be empty.
std::string_view git_subsection(std::string_view name);

// The value as git reads a boolean; empty if it is not one.
std::optional<bool> git_truth(const std::optional<std::string> &value);

// True for a setting that names a program, or a place that git takes programs or further settings from.
bool runs_code(const GitSetting &setting);

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
