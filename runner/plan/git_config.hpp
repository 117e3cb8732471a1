// Which settings of the user's git a session's git gets, and the file that holds them.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// Which settings of the user's git a session's git gets: only listed ones, which start no program and hold no secret.

// Accepts any bytes. A setting that names a file of the user's does not pass here (copied_git_file).
bool passes_into_session(const GitSetting &setting);

// The name of the session's copy for a setting of this name; empty where the setting names no file that is copied.
std::string copied_git_file(std::string_view name);
// Where the session's git finds it.
std::string git_file_inside(const std::string &copy);

// Whether a setting would pass if it held no password or token.
bool is_kept_for_its_secret(const GitSetting &setting);

// A configuration file that holds values exactly (git-config(1), Syntax).

// Whether a session's git can write the repository's own configuration.
enum class RepositoryConfig { writable, protected_ }; // NOLINT(readability-identifier-naming): the word alone is a keyword

// The session's configuration file, in this order: defaults for a session, which every other file can override; the included file; who
// commits; which repositories git trusts; and the other settings of the user's that pass. It holds nothing
// else, whatever the identity holds. A value with a NUL, which git cannot have, is left out.
std::string git_config_text(const std::string &included, const GitIdentity &identity, RepositoryConfig config);

// Settings that win over every file. They go into the lowest layer of an environment that has no such settings yet; each other layer can
// replace them.
void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from);

} // namespace pi_agent
