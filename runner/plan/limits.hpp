// The limits in force where the policy sets none: one user's sessions must leave room for everybody else's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pi_agent {

constexpr std::size_t session_limit = 8;           // of one user at once, unless the policy says otherwise
constexpr std::size_t start_limit = 16;            // of one user under way at once; each holds one of root's few bus connections
constexpr std::size_t submount_limit = 64;         // hidden in one session; each costs a mount, of fs.mount-max for the whole host
constexpr std::size_t guard_limit = 512;           // mount points of what is protected in one session, and as many of what is masked
constexpr std::size_t mask_search_limit = 200'000; // entries of a project that are looked at to find what is masked
constexpr int mask_search_seconds = 3;
constexpr std::uint64_t session_tasks = 4096; // processes and threads of one session; builds use hundreds

// A share, because an amount that suits a large host is no limit on a small one. Four fifths
// let a single session use nearly all of a small host; all sessions of a user together have no more (data/pi-agent-slice.conf), so a fifth
// is always left for the host and its other users.
constexpr std::uint64_t session_memory_percent = 80;
// As systemd counts it: all ones is everything.
constexpr std::uint32_t share_of_memory(std::uint64_t percent)
{
    return static_cast<std::uint32_t>(std::uint64_t{UINT32_MAX} * percent / 100);
}

constexpr std::int32_t agent_oom_score = 500; // of -1000 to 1000; who has more is killed first

// Of memory, for the temporary directories of one session under `scratch: tmpfs`. What they hold counts against the session's memory, too.
constexpr const char *scratch_memory_share = "20%";

} // namespace pi_agent
