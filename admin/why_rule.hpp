// Which rule decides what an agent may do with a path, and which key of the policy changes that.
#pragma once

#include "admin/explain.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// What a session said of a path.
struct Access {
    bool exists = false;
    bool read = false;
    bool write = false;
    bool execute = false; // of a directory: may be entered
    std::string mount;    // where the file system is mounted that holds it, or what is nearest to it
};

struct Reason {
    std::string rule; // "in the project's root /srv/app"
    std::string key;  // of the policy: "projects.protect"; empty when no key changes it
    Position where;   // of what the policy says, when it says something
};

// `path` is absolute and normal; `project` is the root that the session shows, as the session sees it. Pure.
Reason reason_for(const std::string &path, const Access &access, const Policy &policy, const Explanation &explanation);

} // namespace pi_agent
