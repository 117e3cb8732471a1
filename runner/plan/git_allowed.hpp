// Which settings of the user's git a session's git gets: only listed ones, which start no program and hold no secret.
#pragma once

#include "common/base/git_settings.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

// Accepts any bytes. A setting that names a file of the user's does not pass here (copied_git_file).
bool passes_into_session(const GitSetting &setting);

// The name of the session's copy for a setting of this name; empty where the setting names no file that is copied.
std::string copied_git_file(std::string_view name);
// Where the session's git finds it.
std::string git_file_inside(const std::string &copy);

// Whether a setting would pass if it held no password or token.
bool is_kept_for_its_secret(const GitSetting &setting);

} // namespace pi_agent
