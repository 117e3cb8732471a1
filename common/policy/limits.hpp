// The limits of sessions, a row each: its bounds, what holds a session to it, and what messages say of it.
#pragma once

#include "common/base/error.hpp"

#include <optional>

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
    std::optional<SaidLimit> files;            // that each process may have open
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
    const char *form;       // how it is written
    const char *bounds;     // in the words of the policy, with the reason where there is one
    const char *note;       // of what the amount is: a line for the agent; nullptr: the agent gets no line
    bool of_user;           // of all sessions of one user, not of each
    const char *controller; // of control groups, which holds a session to it; or nullptr
    const char *property;   // of a unit; or nullptr
    std::uint64_t factor;   // how much of the property is one of the amount
    const char *no_job;     // why a Job of Kubernetes cannot have it; or nullptr
    const char *job_remedy;
};

// With less, an agent cannot work (docs/concepts/limits.md says what was measured).
constexpr std::uint64_t least_memory = std::uint64_t{128} << 20U;
constexpr std::uint64_t least_disk = std::uint64_t{64} << 20U;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50U; // far from what overflows, and more than any host has
constexpr std::uint64_t most_tasks = std::uint64_t{1} << 22U; // the most numbers of processes that the kernel has
constexpr std::uint64_t most_files = std::uint64_t{1} << 20U; // as the kernel has it without a sysctl (fs.nr_open)
constexpr std::uint64_t most_seconds = std::uint64_t{365} * 24 * 3600;
constexpr std::uint64_t most_sessions = 64; // each costs root processes, mounts and a connection to the system bus

constexpr const char *form_of_memory =
    "a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), e.g. 8G or 50%";

// The columns are in the order of LimitRow. Of the two rows of memory a policy says one at most.
inline constexpr LimitRow limit_rows[] = {
    {"limits.memory", &LimitsPolicy::memory, "KMGT", least_memory, most_bytes, form_of_memory,
     "at least 128M, as the agent itself takes more than half of that, and at most 1024T", "of memory", false, "memory", nullptr, 1,
     nullptr, nullptr},
    {"limits.memory", &LimitsPolicy::memory_share, "%", 1, 100, form_of_memory, "between 1% and 100%", "of the host's memory", false,
     nullptr, nullptr, 1, "is a share of this host", "say an amount, e.g. 8G"},
    {"limits.tasks", &LimitsPolicy::tasks, "", 32, most_tasks, "a whole number of processes and threads, e.g. 4096",
     "at least 32, as the agent itself takes a dozen, and at most 4194304", "processes and threads", false, "pids", "TasksMax", 1,
     "a Job cannot say it; a node can (podPidsLimit of the kubelet)", "leave it out, and set it there"},
    {"limits.cpu", &LimitsPolicy::cpu, "%", 10, 100'000,
     "a whole number with % (of one processor; more than 100% is more than one), e.g. 400%",
     "at least 10%, with which a start takes many seconds, and at most 100000%", "of one processor", false, "cpu", "CPUQuotaPerSecUSec",
     10'000, nullptr, nullptr},
    {"limits.runtime", &LimitsPolicy::runtime, "smhd", 10, most_seconds, "a whole number with s, m, h or d, e.g. 12h",
     "at least 10s, as a start is part of it, and at most 365d", "of time", false, nullptr, "RuntimeMaxUSec", 1'000'000, nullptr, nullptr},
    {"limits.files", &LimitsPolicy::files, "", 256, most_files, "a whole number of open files, e.g. 8192",
     "at least 256, as the agent itself takes dozens, and at most 1048576", "open files in each process", false, nullptr, "LimitNOFILE", 1,
     "a Job cannot say it; what runs containers on a node can", "leave it out, and set it there"},
    {"limits.sessions", &LimitsPolicy::sessions, "", 1, most_sessions, "a whole number of sessions, e.g. 8", "between 1 and 64", nullptr,
     true, nullptr, nullptr, 1, nullptr, nullptr},
    {"limits.disk", &LimitsPolicy::disk, "KMGT", least_disk, most_bytes, "a whole number with K, M, G or T (powers of 1024), e.g. 10G",
     "at least 64M, as an agent with a few packages takes more, and at most 1024T", "of disk for your home, /tmp and /var/tmp", true,
     nullptr, nullptr, 1, "only the runner puts files under a quota", "leave it out, and limit the volume"},
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

// Reads the value of a row's key; reports another value. Returns nothing for the other of the two rows of memory.
struct PolicyValue;
std::optional<SaidLimit> read_said_limit(const LimitRow &row, const PolicyValue &value);

} // namespace pi_agent
