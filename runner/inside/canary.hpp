// What a session looks like from inside, compared with its plan: pi-agent-canary asks that, in the agent's place. And what keeps a session
// from a host or a path, in words: for the agent, which can then tell its user. Unprivileged.
#pragma once

#include "runner/inside/canary_plan.hpp"
#include "runner/wire/gate_messages.hpp"

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

// --- What keeps this session from a host or a path.

struct WhyAnswer {
    bool is_free = false; // nothing keeps it from that
    std::string text;     // lines, in which what others chose is escaped
};

// Reads what is here, and asks nobody. `root` is "/", below which the session's lists are.
WhyAnswer why(const std::string &asked, const std::string &root);

// What this session reads of its hosts; none where it has no list.
std::optional<SessionHosts> find_session_hosts(const std::string &root);

// What encode() wrote of them. Strict: throws Failure(internal) for anything else.
SessionHosts decode_session_hosts(std::string_view text);

} // namespace pi_agent
