// Properties of units as systemd wants them over D-Bus, written as lines of a unit file.
#pragma once

#include "runner/plan/unit_properties.hpp"

#include <string>

namespace pi_agent {

// "NAME=VALUE\n" and, for a list of mounts, a line for each.
std::string unit_file_lines(const UnitProperty &property);

} // namespace pi_agent
