// The processes that this one descends from, one by one, as the kernel tells them.
#pragma once

#include "common/base/fd.hpp"

#include <functional>
#include <string>
#include <sys/types.h>

namespace pi_agent {

// One of them.
struct Ancestor {
    FdRef directory;  // its own in /proc: it never means another process
    std::string name; // as it says itself
    bool is_roots;    // by all of its user ids
    pid_t number = 0; // another process may have it once this one is gone
};

// Whether `is_it` accepts one of the ancestors, from the parent up. False where one of them ended meanwhile, because others adopt its
// children.
bool has_ancestor(const std::function<bool(const Ancestor &)> &is_it);

// A process of root's with the name of Slurm's for a job. It is what somebody who is not root can see of that.
constexpr const char *job_process = "slurmstepd";
bool looks_like_job(const Ancestor &ancestor);

} // namespace pi_agent
