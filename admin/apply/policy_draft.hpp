// A policy as it would be: the installed files with one of them exchanged, and what is wrong with that.
#pragma once

#include "admin/diagnose/user_view.hpp"
#include "admin/host/root_files.hpp"

#include <optional>
#include <string>

namespace pi_agent {

std::optional<std::string> find_text(const PolicyFiles &files, const std::string &file);

// The other files as they are, and the draft instead of its own file. Diagnostics name the file, not the draft.
PolicyFiles with_draft(PolicyFiles files, const std::string &file, const std::string &draft);

// What is wrong with the policy, as check prints it; empty if nothing is.
std::string mistakes_in(const PolicyFiles &files, const Observer &observer);

} // namespace pi_agent
