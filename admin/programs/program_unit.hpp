// A program in a transient unit of systemd's, started by PID 1: it takes nothing of this process's session, and leaves nothing behind.
#pragma once

#include "admin/programs/program.hpp"
#include "common/base/ids.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/unit_properties.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Whether this host runs systemd (sd_booted(3)).
bool has_systemd();

// Runs `command`, which begins as root and becomes `user`, in the slice of that user, and waits for it. What it has started ends with it,
// and so does the unit after `patience_seconds`. Throws Failure(unavailable) then, or when systemd does not start it.
ProgramResult run_in_unit(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds);

// Of that unit. Pure.
std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds);

// What sh(1) reads to become `command`, with these variables ("NAME=value") and no other. Pure.
std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables);

} // namespace pi_agent
