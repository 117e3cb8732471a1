// Git's configuration syntax, read from memory (git-config(1), Syntax), and which settings make git run a program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct GitSetting {
    std::string name;                 // "section.key" or "section.Sub.Section.key", lower case but for what is between
    std::optional<std::string> value; // none: the name alone, which git takes for true
    friend bool operator==(const GitSetting &, const GitSetting &) = default;
    static void fields(auto &archive, auto &self) { archive(self.name, self.value); }
};

struct GitSettings {
    std::vector<GitSetting> list; // in order; up to the mistake where there is one
    bool is_valid = true;         // false: git would stop at a line
};

// Bounded by its input: no file is opened, whatever `include.path` says.
GitSettings parse_git_settings(std::string_view text);

// The value of core.worktree: the last one, as git has it. None where there is none, or an empty one.
std::optional<std::string> worktree_of_config(std::string_view text);

// "section.key", without what is between; empty for what is no name of a setting.
std::string git_rule(std::string_view name);

// What is between; empty where nothing is.
std::string_view git_subsection(std::string_view name);

// What git takes a value for that is to be true or false; none where it is neither.
std::optional<bool> git_truth(const std::optional<std::string> &value);

// True for a setting that names a program, or a place that git takes programs or further settings from.
bool runs_code(const GitSetting &setting);

} // namespace pi_agent
