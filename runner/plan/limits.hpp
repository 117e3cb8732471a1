// Limits that no policy changes, notices about limits that a session reached, and what the running systemd can do.
#pragma once

#include "common/base/request.hpp"

#include "common/policy/policy.hpp"

namespace pi_agent {

// --- Limits that no policy changes: one user's sessions must leave room for everybody else's.

constexpr std::size_t start_limit = 16;        // of one user being made at once; each holds one of root's few bus connections
constexpr std::size_t question_slot_limit = 4; // of one user being answered at once, about their own sessions
constexpr std::size_t submount_limit = 64;     // hidden in one session; each costs a mount, of fs.mount-max for the whole host
constexpr std::size_t guard_limit = 512;       // mount points among the host's for what is protected in one session, and for what is masked
constexpr std::size_t protect_limit = 16'384;  // and in the session's own mount table
constexpr std::size_t standin_limit = 2500;    // placeholders of one session; each is a link, of up to a page, in everybody's file system
constexpr std::size_t mask_search_limit = 200'000; // entries of a project that the search for masked files looks at
constexpr int mask_search_seconds = 3;

// As systemd counts it: all ones is everything.
constexpr std::uint32_t share_of_memory(std::uint64_t percent)
{
    return static_cast<std::uint32_t>(std::uint64_t{UINT32_MAX} * percent / 100);
}

constexpr std::int32_t agent_oom_score = 500; // of -1000 to 1000; the process with more is killed first

// Of memory, for the temporary directories of one session under `scratch: tmpfs`. What they hold counts against the session's memory, too.
constexpr const char *scratch_memory_share = "20%";

// --- Tells a user about the limits that a session reached.

struct LimitEvents {
    std::uint64_t killed = 0;        // processes that the kernel killed for want of memory
    bool own_memory = false;         // the session itself was at its limit
    std::uint64_t refused_tasks = 0; // starts of processes and threads
};

// For the end of a session, in words: what happened, the limit with its place in the policy, what to do. `result` as in SandboxResult.
std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted);

// --- What a session's unit has used.

struct UnitUsage {
    std::optional<std::uint64_t> memory_peak; // bytes
    std::optional<std::uint64_t> cpu_usec;
};

// --- Features that the running systemd has and the oldest supported one lacks: decided by its version, here and nowhere else.

constexpr unsigned oldest_systemd = 252;
constexpr unsigned systemd_with_private_pids = 257;
constexpr unsigned systemd_with_log_sockets = 257;
constexpr unsigned systemd_with_identity_ids = 257;

// What PrivateUsersEx=identity maps: the first 65,536 ids, each to itself (systemd.exec(5)).
constexpr std::uint32_t identity_ids = 65'536;

struct SystemdFeatures {
    unsigned version;
    bool private_pids; // PrivatePIDs=: a session has process numbers of its own, and pi-agent-exec is 1
    bool log_sockets;  // BindLogSockets=: where it exists, the journal's sockets come into every root tree unless it says no
    bool identity_ids; // PrivateUsersEx=identity: a session's user namespace knows more ids than root's and the agent's
};

// `version` is the manager's own text ("257.9-1~deb13u1"). Throws Failure(unavailable) when it is too old or cannot be parsed.
SystemdFeatures systemd_features(const std::string &version);

} // namespace pi_agent
