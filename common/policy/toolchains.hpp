// Which directories of a user's home sessions show to the tools inside: the default lists, where they appear inside, and what is never
// shown.
#pragma once

#include "common/policy/policy_paths.hpp"

namespace pi_agent {

// Relative to the user's home: programs and their configuration, read-only inside.
const std::vector<std::string> &default_readable();

// Relative to the user's home: downloads that tools keep, and environments. A session's changes there end with it.
const std::vector<std::string> &default_caches();

// Where a tool inside looks for `path` of the user's home, relative to the agent's home (rows B2 to B5 of the environment). Empty if
// sessions see it only at its own path, because the agent has its own directory of that name.
std::string place_in_agent_home(const std::string &path);

// Whether sessions also see it below the user's home: programs and environments use that path for themselves.
bool is_at_own_path(const std::string &path, bool is_cache);

// Names directly in it that hold credentials; a session does not see them. With such names it is an environment, whichever list has it.
std::vector<std::string> masked_in(const std::string &path);

// Relative to the user's home: what has credentials, or runs code for users of the directory around it. Files and directories.
const std::vector<std::string> &never_shown();

// Whether a path relative to a home is, contains or is inside one of never_shown(). The same for toolchains and roots.
std::optional<TextProblem> problem_of_secrets(std::string_view below_home);

// Whether an absolute path, in any home, has a name of never_shown() or is inside one with that name.
std::optional<TextProblem> problem_of_secrets_anywhere(std::string_view path);

// An entry of a list: "~/" and a path that is not, does not contain and is not inside one of never_shown(). Masked names in it do not
// count.
std::optional<TextProblem> problem_of_home_directory(const std::string &path);

} // namespace pi_agent
