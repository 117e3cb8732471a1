// Where a path in the shown project really leads: its links followed by hand and never out of the project. In a child that is the user.
#pragma once

#include "common/base/fd.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// A tree that the agent is shown, as its search sees it.
struct GuardedTree {
    FdRef top;        // O_PATH, in the host's mount namespace
    std::string path; // canonical, on the host
};

struct ShownPath {
    enum class Kind {
        directory,
        other,   // a file, or anything else that is no directory and no link
        missing, // as far as `path` it is there, and nothing has the name of `rest`'s first component
        outside, // leads out of the project
        hidden,  // on another file system that is mounted there, which the agent is not shown
        closed,  // `path` is a directory of the user's that the user may not enter: who owns it may open it at any time
        unclear, // may not be looked at by the user, or has no end
    };
    Kind kind = Kind::unclear;
    std::string path;               // of what was found, canonical and relative to the top; any bytes
    std::string rest;               // where it is missing: what does not exist below `path`
    std::vector<std::string> links; // symbolic links on the way, canonical themselves
};

// Whether `path` (canonical, relative to the top) is a directory of this process' account: who owns it may change its rights at any time.
bool is_own_directory(const GuardedTree &tree, const std::string &path);

// Follows `path`, which is relative to `base` (canonical, relative to the top, a directory) or absolute, as a program inside would.
ShownPath find_shown(const GuardedTree &tree, const std::string &base, const std::string &path);

} // namespace pi_agent
