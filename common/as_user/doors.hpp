// The table of files of a project that run code later, outside of the sandbox (doors.toml).
#pragma once

#include <string_view>

namespace pi_agent {

// How the default of `projects.protect` keeps a path: not at all, what is there, or also what is missing, with what stands for it.
enum class DoorGuard { none, existing, comment, commondir, directory };

// A row of doors.toml, which says what its columns mean. `paths` and `words` have a space between two.
struct Door {
    std::string_view paths, what, by, source;
    std::string_view words = {};
    std::string_view beside = {};
    DoorGuard protect = DoorGuard::none;
};

inline constexpr Door door_table[] = {
#include "common/doors.inc"
};

} // namespace pi_agent
