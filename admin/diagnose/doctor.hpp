// pi-agentctl doctor: every way around the wrapper, every reason why a start would fail, and whether the sandbox holds.
#pragma once

#include "admin/diagnose/canary_run.hpp"
#include "admin/diagnose/fault.hpp"

#include <optional>
#include <ostream>
#include <string>

namespace pi_agent {

struct DoctorOptions {
    std::optional<std::string> user; // whose session tries the sandbox; without one the first who has a root
    bool attack = false;             // print every probe with its answer, not only the wrong ones
    bool json = false;
};

// Throws Failure(unavailable) when anything is not as it is to be, Failure(denied) unless it is root's.
void run_doctor(const DoctorOptions &options, std::ostream &out);

} // namespace pi_agent
