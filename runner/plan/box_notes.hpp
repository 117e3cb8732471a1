// What the agent is told about the box it works in, as instructions in the file /AGENTS.md of its view.
#pragma once

#include "common/policy/policy.hpp"

namespace pi_agent {

// What the notes tell of this session, beside its policy.
struct BoxFacts {
    Policy policy;
    std::string project; // the root's path
    std::string home;
    std::string account;                      // the agent's
    std::vector<std::string> hidden = {};     // mount points in the project that look empty, relative to it; any bytes
    std::vector<std::string> read_only = {};  // paths in the project that are protected, relative to it; any bytes
    bool masked = false;                      // some of it cannot be read
    std::vector<std::string> toolchains = {}; // of the user's, read-only: paths as the agent sees them; any bytes
    std::vector<std::string> caches = {};     // copies of the user's, whose changes are not kept: likewise
    bool limited = true;                      // the sandbox holds the session to limits at all
    bool confined = true;                     // there is a sandbox
    bool knows_ids = true;                    // it knows the ids of other accounts and groups, to keep them in access control lists
};

// What no policy changes, for `pi-agentctl explain`, which says how a session differs: words of the lines in the notes.
inline constexpr std::string_view always_different = "set-id files, other owners and groups, core files, niceness of others, perf, "
                                                     "namespaces, systemctl, sudo, variables and dotfiles of the user";

// A few lines. They hold nothing that could pass for somebody else's instruction: names from others are escaped and few.
std::string box_notes(const BoxFacts &facts);

} // namespace pi_agent
