// Git's own syntax: the output of `git config -z`, and a configuration file that holds values exactly (git-config(1), Syntax).
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

// The session's configuration file, in this order: defaults for a session, which every other file can override; the included file; who
// commits; which repositories git trusts; and the other settings of the user's that pass (runner/plan/git_allowed.hpp). It holds nothing
// else, whatever the identity holds. A value with a NUL, which git cannot have, is left out.
std::string git_config_text(const std::string &included, const GitIdentity &identity, RepositoryConfig config);

// Settings that win over every file. They go into the lowest layer of an environment that has no such settings yet; each other layer can
// replace them.
void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from);

} // namespace pi_agent
