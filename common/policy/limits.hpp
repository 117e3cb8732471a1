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
    friend bool operator==(const SaidLimit &one, const SaidLimit &other) noexcept { return one.amount == other.amount; }
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

// The rows are in common/policy/limits.toml. Amounts are in the units of LimitsPolicy. The table of keys (policy_keys.hpp) has the default
// and the meaning.
struct LimitRow {
    const char *key; // of the policy
    LimitMember said;
    std::string_view units = {}; // their letters; empty: a plain number
    std::uint64_t least;
    std::uint64_t most;
    const char *form;                 // how it is written
    const char *bounds;               // in the words of the policy, with the reason where there is one
    const char *note = nullptr;       // of what the amount is: a line for the agent; nullptr: the agent gets no line
    bool of_user = false;             // of all sessions of one user, not of each
    const char *controller = nullptr; // of control groups, which holds a session to it
    const char *property = nullptr;   // of a unit
    std::uint64_t factor = 1;         // how much of the property is one of the amount
    const char *no_job = nullptr;     // why a Job of Kubernetes cannot have it
    const char *job_remedy = nullptr;
};

inline constexpr LimitRow limit_rows[] = {
#include "common/limits.inc"
};
constexpr std::uint64_t least_memory = limit_rows[0].least;

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
