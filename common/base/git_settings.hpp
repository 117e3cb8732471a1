// Git's settings, and which of them make git run a program.
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

} // namespace pi_agent
