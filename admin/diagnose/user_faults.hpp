// What a user's own shell starts in the place of the wrapper, found out as that user.
#pragma once

#include "admin/diagnose/fault.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// The wrapper's own path, and those that lead to it from where the host has its programs: on NixOS, users find it by links.
std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper);

// Runs the user's login shell, as that user and apart from this process (user_program.hpp). `wrapper`: its names, its own path first.
Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper);

// `output` is that shell's; what stands in it is the user's word. Pure.
Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper);

} // namespace pi_agent
