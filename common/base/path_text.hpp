// Paths as text, whatever is there on the host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// "", "." and ".." between slashes make two texts of one path, and ".." leads out of it.
bool has_odd_component(std::string_view path) noexcept;

// "/a/" and "/a//" become "/a"; "/" stays.
std::string without_trailing_slashes(std::string path);

// True when `path` is `directory` or lies below it, compared by component ("/proj" does not hold "/proj-evil"). Both canonical.
bool is_within(std::string_view path, std::string_view directory) noexcept;

// `name` below `directory`; "" is the directory that both are relative to. `name` may have several components.
std::string join_path(const std::string &directory, std::string_view name);

// The directory that holds what an absolute path names; "/" for what lies there.
std::string parent_of(const std::string &path);

// The names in a path, ".." too, without empty ones and ".".
std::vector<std::string> path_components(std::string_view path);

} // namespace pi_agent
