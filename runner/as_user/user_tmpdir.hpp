// The temporary directory that a user names (--pi-agent-tmpdir): made as that user, inside the root that the session mounts.
#pragma once

#include "common/base/request.hpp"
#include "runner/as_user/project.hpp"

#include <string>

namespace pi_agent {

// Its path beneath the project; empty when the request names none. Throws Failure(denied) when it does not lie in what is shown, or is not
// the caller's own directory.
std::string make_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request);

// `named` beneath the root, without "." and "..": relative to the working directory, or absolute. Throws as above. Pure.
std::string place_of_tmpdir(const std::string &named, const std::string &shown_path, const std::string &below);

} // namespace pi_agent
