// Which settings of the user's git a session's git is given: those of a list, which start no program and hold no secret.
#pragma once

#include "common/base/git_settings.hpp"

#include <string>
#include <string_view>

namespace pi_agent {

// Any bytes. A setting that names a file of the user's is none of these (copied_git_file).
bool passes_into_session(const GitSetting &setting);

// How the session's copy of the file is called that a setting of this name names; empty where it names none that is copied.
std::string copied_git_file(std::string_view name);
// Where the session's git finds it.
std::string git_file_inside(const std::string &copy);

// Whether a setting would pass if it held no password or token.
bool is_kept_for_its_secret(const GitSetting &setting);

} // namespace pi_agent
