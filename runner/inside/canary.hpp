// Compares what a session looks like from inside with its plan. pi-agent-canary asks it, in the agent's place. Unprivileged.
#pragma once

#include "runner/inside/canary_plan.hpp"

namespace pi_agent {

constexpr const char *setuid_in_project = "a setuid file in the project";
// What is seen of a probe in the project whose account may not write there ends so.
constexpr std::string_view kept_by_permissions = "(EACCES)";

struct CanaryFinding {
    std::string what;     // "write /etc"
    std::string expected; // "refused"
    std::string seen;     // "refused (EROFS)", "done"
    bool is_right;
};

// Leaves nothing behind.
std::vector<CanaryFinding> look_around(const CanaryPlan &plan);
// The part about a network of hosts: adds what it finds.
void look_at_gate(std::vector<CanaryFinding> &findings);
void expect(std::vector<CanaryFinding> &findings, const std::string &what, const std::string &expected, const std::string &seen);
// "EPERM".
std::string word_for(int error);

// --- What a process may do with paths, for `pi-agentctl why`.

struct PathAccess {
    bool exists = false; // true for a symlink that leads nowhere
    bool read = false;
    bool write = false;
    bool execute = false;      // of a directory: may be entered
    bool read_only = false;    // the file system, or the mount, that holds it or what is nearest to it
    std::string mount;         // where that is mounted
    std::string leads_to = {}; // where a path through symlinks ends, if nothing exists there
};

PathAccess look_at_path(const std::string &path);

// One line of JSON. Decoding throws Failure(unavailable) for any other text.
std::string encode(const std::vector<PathAccess> &answers);
std::vector<PathAccess> decode_path_access(const std::string &line);

} // namespace pi_agent
