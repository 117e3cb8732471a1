// Which directories of a user's home sessions show to the tools inside: what is listed by default, where inside it appears, and what is
// never shown.
#pragma once

#include "common/policy/policy_paths.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Relative to the user's home: programs and their configuration, read-only inside.
const std::vector<std::string> &default_readable();

// Relative to the user's home: downloads that tools keep, and environments. What a session changes there goes with it.
const std::vector<std::string> &default_caches();

// Where a tool inside looks for what lies at `path` in the user's home; relative to the agent's home (rows B2 to B5 of the environment).
// Empty for what sessions see at its own path alone: the agent has directories of its own of that name.
std::string place_in_agent_home(const std::string &path);

// Whether sessions see it below the user's home, too: programs and environments name themselves by that path.
bool is_at_own_path(const std::string &path, bool is_cache);

// Names directly in it that hold credentials; there is nothing of that name where a session sees it. So it is an environment, whichever
// list names it.
std::vector<std::string> masked_in(const std::string &path);

// Relative to the user's home: what holds credentials, or runs code for whoever uses the directory around it. Files and directories.
const std::vector<std::string> &never_shown();

// Of a path relative to a home: that it is, holds or lies in one of never_shown(). The same for toolchains and roots.
std::optional<PathProblem> problem_of_secrets(std::string_view below_home);

// Of an absolute path, whosever home it may lie in: that it has the name of one of never_shown(), or lies in one with that name.
std::optional<PathProblem> problem_of_secrets_anywhere(std::string_view path);

// Of a list: "~/" and a path that neither is, holds nor lies in one of never_shown(); what is masked in it does not count.
std::optional<PathProblem> problem_of_home_directory(const std::string &path);

} // namespace pi_agent
