// Rules for the text of paths in a policy; what they are on the host is found out later, as their user.
#pragma once

#include "common/base/text.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

struct PathProblem {
    std::string text;
    std::string remedy;
};

// A project root: absolute, or "~/" and more.
std::optional<PathProblem> problem_of_root(const std::string &path);

// A root that is shown at its own path: its bytes reach unit properties (design rule 2), so its alphabet is theirs.
std::optional<PathProblem> problem_of_root_in_unit(const std::string &path);

// A place that can be no project, by its canonical path: the system's own, kernel file systems, and the agents' state, which an agent must
// reach through its own home alone.
std::optional<PathProblem> problem_of_place(const std::string &path);

// A config directory: absolute, or relative to the home. Opened only with its user's rights, so any printable name will do.
std::optional<PathProblem> problem_of_config_directory(const std::string &path);

// A path inside the config directory, relative to it.
std::optional<PathProblem> problem_of_config_path(const std::string &path);

// What `projects.mask` says of a path below the top of a project. A pattern without '/' is held against each name, another one against the
// path; fnmatch(3), and only the '/' of a pattern matches a '/'.
bool is_masked_by(const std::string &pattern, const std::string &path);

// A path inside a project, or a pattern of such paths, relative to it.
std::optional<PathProblem> problem_of_project_path(const std::string &path);

// The same, with a '/' at its end for a directory.
std::optional<PathProblem> problem_of_protected_path(const std::string &path);

// A file of variables of the user's: absolute, or relative to the home.
std::optional<PathProblem> problem_of_host_file(const std::string &path);

// A file of root's: absolute.
std::optional<PathProblem> problem_of_managed_file(const std::string &path);

// Something of the host to show to the agent, as written or where links lead: absolute.
std::optional<PathProblem> problem_of_view_path(const std::string &path);

// Of one that PATH is to hold.
std::optional<PathProblem> problem_of_program_directory(const std::string &path);

// A device node or a directory of them, below /dev; or nvidia_devices, for all that the driver of that name makes.
constexpr const char *nvidia_devices = "nvidia";
std::optional<PathProblem> problem_of_device(const std::string &path);

// The agent's program.
std::optional<PathProblem> problem_of_binary(const std::string &path);

} // namespace pi_agent
