// What a method must build for a session, how the session ended, and what the agent is told of it.
#pragma once

#include "common/host/account.hpp"

#include "runner/wire/launch_record.hpp"

namespace pi_agent {

// --- What a method must build for a session, and how the session ended, whatever the method.

// A part of the session directory that the unit shows at another path.
struct Bind {
    std::string source;
    std::string target;
    bool read_only;
    bool may_be_missing = false;
};

// What the session must look like. A method that cannot honour a part of it says so when the policy is read
// (common/policy/policy_sections.hpp), or refuses to start.
struct SandboxPlan {
    std::string session_id;
    Uid user; // the caller
    Uid agent;
    Gid agent_group;
    std::vector<Gid> groups;           // supplementary: those that granted the roots
    std::vector<gid_t> account_groups; // groups of the agent's account, which systemd looks up itself
    std::string root_directory;
    std::vector<Bind> binds;
    std::string home_path;
    std::vector<std::string> writable_roots; // of projects, each at its own path
    NetworkPolicy network;
    LimitsPolicy limits = {};
    Tracing tracing = Tracing::automatic;
    CallsPolicy calls = {};
    std::vector<std::string> devices = {};    // nodes of the host
    std::vector<std::string> late_files = {}; // of the root directory, outside of its binds: written once the sandbox is being built
};

// How the launcher ended, in the words of systemctl show.
struct SandboxResult {
    bool ended;         // and no process of the session runs any more
    std::string result; // "success", "exit-code", "signal", "oom-kill", …
    int code;           // CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0 when it never ran
    int status;         // exit status or signal number
};

// How the agent ended: by the sandbox's report (systemd's, bwrap's), and where that does not say, by the launcher's. The first process of a
// PID namespace cannot die of a signal that it sends itself, so there pi-agent-exec exits with 128 + the signal of the agent and reports
// the signal. That report is a hostile peer's hint: it counts only where it agrees with what was seen from outside, or where nothing was.
// `killed`: the runner had all of it killed. Throws Failure(system_failure) when nothing tells.
AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed = false);

// What is seen of an engine that outlived the launcher and was killed for it: a signal as its end then says nothing about the agent.
SandboxResult without_own_kill(SandboxResult seen);

// --- What the agent is told about the box it works in, as instructions in the file /AGENTS.md of its view.

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
