// The limits of sessions, a row each: its bounds, what holds a session to it, and what messages say of it.
#pragma once

#include "common/base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// A limit of the policy, with its text and position.
struct SaidLimit {
    std::uint64_t amount = 0;
    std::string text;
    Position where;
};

// What a start does where no quota of the file system holds limits.disk: it tells its user, or ends.
enum class WithoutQuota : std::uint8_t { tell, refuse };

// If unset: the default of the table of keys, or no limit.
struct LimitsPolicy {
    std::optional<SaidLimit> memory;           // of a session, bytes
    std::optional<SaidLimit> memory_share;     // or instead: percent of the host's
    std::optional<SaidLimit> tasks;            // processes and threads of a session
    std::optional<SaidLimit> cpu;              // of a session, percent of one processor
    std::optional<SaidLimit> runtime;          // of a session, seconds
    std::optional<SaidLimit> sessions;         // of one user at once
    std::optional<SaidLimit> disk;             // of one user's agent, home and temporary files together; bytes
    std::optional<WithoutQuota> without_quota; // unset: tell
};

using LimitMember = std::optional<SaidLimit> LimitsPolicy::*;

// Amounts are in the units of LimitsPolicy. The table of keys (policy_keys.hpp) has the default and the meaning.
struct LimitRow {
    const char *key; // of the policy
    LimitMember said;
    std::string_view units; // their letters; empty: a plain number
    std::uint64_t least;
    std::uint64_t most;
    const char *form;                 // how it is written
    const char *bounds;               // in the words of the policy, with the reason where there is one
    const char *note = nullptr;       // of what the amount is, for the agent, which is told of these limits
    bool of_user = false;             // of all sessions of one user, not of each
    const char *controller = nullptr; // of control groups: holds a session to it
    const char *property = nullptr;   // of a unit, and the amount of it that is one of ours
    std::uint64_t factor = 1;
    const char *no_job = nullptr; // why a Job of Kubernetes cannot have it, and what to do
    const char *job_remedy = nullptr;
};

constexpr std::uint64_t mebibyte_of_limit = std::uint64_t{1} << 20U;
// With less, an agent cannot work (docs/concepts/limits.md says what was measured).
constexpr std::uint64_t least_memory = 128 * mebibyte_of_limit;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50U; // far from what overflows, and more than any host has

inline constexpr LimitRow limit_rows[] = {
    {.key = "limits.memory",
     .said = &LimitsPolicy::memory,
     .units = "KMGT",
     .least = least_memory,
     .most = most_bytes,
     .form = "a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), e.g. 8G or 50%",
     .bounds = "at least 128M, as the agent itself takes more than half of that, and at most 1024T",
     .note = "of memory",
     .controller = "memory"},
    {.key = "limits.memory", // at most one of these two is said
     .said = &LimitsPolicy::memory_share,
     .units = "%",
     .least = 1,
     .most = 100,
     .form = "",
     .bounds = "between 1% and 100%",
     .note = "of the host's memory",
     .no_job = "is a share of this host",
     .job_remedy = "say an amount, e.g. 8G"},
    {.key = "limits.tasks",
     .said = &LimitsPolicy::tasks,
     .units = "",
     .least = 32,
     .most = std::uint64_t{1} << 22U, // the most numbers of processes that the kernel has
     .form = "a whole number of processes and threads, e.g. 4096",
     .bounds = "at least 32, as the agent itself takes a dozen, and at most 4194304",
     .note = "processes and threads",
     .controller = "pids",
     .property = "TasksMax",
     .no_job = "a Job cannot say it; a node can (podPidsLimit of the kubelet)",
     .job_remedy = "leave it out, and set it there"},
    {.key = "limits.cpu",
     .said = &LimitsPolicy::cpu,
     .units = "%",
     .least = 10,
     .most = 100'000,
     .form = "a whole number with % (of one processor; more than 100% is more than one), e.g. 400%",
     .bounds = "at least 10%, with which a start takes many seconds, and at most 100000%",
     .note = "of one processor",
     .controller = "cpu",
     .property = "CPUQuotaPerSecUSec",
     .factor = 10'000},
    {.key = "limits.runtime",
     .said = &LimitsPolicy::runtime,
     .units = "smhd",
     .least = 10,
     .most = std::uint64_t{365} * 24 * 3600,
     .form = "a whole number with s, m, h or d, e.g. 12h",
     .bounds = "at least 10s, as a start is part of it, and at most 365d",
     .note = "of time",
     .property = "RuntimeMaxUSec",
     .factor = 1'000'000},
    {.key = "limits.sessions",
     .said = &LimitsPolicy::sessions,
     .units = "",
     .least = 1,
     .most = 64, // each costs root processes, mounts and a connection to the system bus
     .form = "a whole number of sessions, e.g. 8",
     .bounds = "between 1 and 64",
     .of_user = true},
    {.key = "limits.disk",
     .said = &LimitsPolicy::disk,
     .units = "KMGT",
     .least = 64 * mebibyte_of_limit,
     .most = most_bytes,
     .form = "a whole number with K, M, G or T (powers of 1024), e.g. 10G",
     .bounds = "at least 64M, as an agent with a few packages takes more, and at most 1024T",
     .note = "of disk for your home, /tmp and /var/tmp",
     .of_user = true,
     .no_job = "only the runner puts files under a quota",
     .job_remedy = "leave it out, and limit the volume"},
};

// The one that is set, bytes or share.
const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept;
// What the policy says for the row's key; of memory, bytes or share.
const std::optional<SaidLimit> &said_for_key(const LimitsPolicy &limits, const LimitRow &row) noexcept;

// What the policy says, or the default of the row; nothing where neither limits. Of memory: the share, unless the policy says bytes.
std::optional<std::uint64_t> in_force(const LimitsPolicy &limits, const LimitRow &row);
// The same of a limit that has a default.
std::uint64_t in_force(const LimitsPolicy &limits, LimitMember limit);

// The amount in force as the policy or the table of keys writes it: "80%"; empty where nothing limits.
std::string text_in_force(const LimitsPolicy &limits, const LimitRow &row);

const LimitRow &limit_row(LimitMember limit);

// The default as the table of keys writes it; empty without one.
std::string_view default_text(const LimitRow &row);

// Reads the value of a row's key; reports what is no such amount. Nothing for the other of the two rows of memory.
struct PolicyValue;
std::optional<SaidLimit> read_limit(const LimitRow &row, const PolicyValue &value);

} // namespace pi_agent
