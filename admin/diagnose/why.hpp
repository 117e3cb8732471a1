// Says which rule lets a path be seen or written, and which hides it: `pi-agentctl why`.
#pragma once

#include "admin/diagnose/explain.hpp"
#include "runner/inside/canary.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// --- pi-agentctl why: may the agent read or write a path, by which rule, and which key would change it. Asked in a session.

struct WhyOptions {
    std::vector<std::string> paths; // relative ones to the directory of the session
    std::optional<std::string> user, directory;
    bool json = false;
};

// Starts one session as the user, in which a shell looks at the paths. Throws Failure.
void run_why(const WhyOptions &options, std::ostream &out);

// --- Which rule decides what an agent may do with a path, and which key of the policy changes that.

struct Reason {
    std::string rule; // "in the project's root /srv/app"
    std::string key;  // of the policy: "projects.protect"; empty when no key changes it
    Position where;   // of what the policy says, when it says something
};

// Where a session shows the project's root of `explanation.directory`; empty where that is not allowed. Pure.
std::string shown_root(const Policy &policy, const Explanation &explanation);

// What the host has at a path, or where links lead from there inside, as far as who asks can see.
enum class OnHost { unknown, nothing, directory, other };

// `path` is absolute and normal, as the session sees it. No key is named that `check` would refuse there. Pure.
Reason reason_for(const std::string &path, const PathAccess &access, OnHost on_host, const Policy &policy, const Explanation &explanation);

} // namespace pi_agent
