// Git's own syntax: what `git config -z` writes, and a configuration file that holds values exactly (git-config(1), Syntax).
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/wire/user_files.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pi_agent {

// The settings in the output of `git config -z --get-regexp`, in their order.
std::vector<GitSetting> read_git_settings(std::string_view output);

// Whether a session's git can write the repository's own configuration.
enum class RepositoryConfig { writable, protected_ }; // NOLINT(readability-identifier-naming): the word alone is a keyword

// The session's configuration file: what git does better in a session, which each other file may say otherwise; what another file says; who
// commits; whose repositories git works in; what else of the user's passes (runner/plan/git_allowed.hpp) and nothing else, whatever the
// identity holds. A value with a NUL, which git cannot have, is left out.
std::string git_config_text(const std::string &included, const GitIdentity &identity, RepositoryConfig config);

// Settings that win over every file. They go into the lowest layer of an environment that has no such settings yet; each other layer can
// replace them.
void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from);

} // namespace pi_agent
