// What a method must build for a session, and how the session ended, whatever the method.
#pragma once

#include "common/host/account.hpp"
#include "runner/wire/launch_record.hpp"

namespace pi_agent {

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

} // namespace pi_agent
