// Programs that root starts as somebody else, and whose files those can change: apart from the administrator's session and control group.
#pragma once

#include "admin/programs/program.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Runs `command`, which begins as root and becomes `user`: where systemd runs in a unit of its own (program_unit.hpp); elsewhere in a
// control group of its own where there can be one (own_group.hpp), and as run_program_apart says. What it leaves is ended. Throws
// Failure(unavailable) when it, or in the absence of systemd its output, is not at the end in time.
ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds);

enum class NewPrivileges { allowed, refused }; // what it executes may gain some (sudo), or not (no_new_privs)

// The same as that user, with the environment of a login.
ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges);

} // namespace pi_agent
