// Answers the agent's calls that the filter asks about (set_gid_calls() and those after it in runner/filter/call_rules.hpp).
#pragma once

#include "runner/filter/call_rules.hpp"

#include <sys/types.h>

#include <array>

namespace pi_agent {

// `path` as the process names it, translated for another one: /proc/self and /dev/fd become those of `thread`.
std::string seen_by(pid_t thread, const std::string &path);

// Runs on a thread of its own, for as long as this process lives. `questions`: what install_agent_call_filter() returned. `changer`: the
// channel of a process that changes modes (runner/as_agent/home.hpp). This thread only finds out what a caller means, as that
// caller could, and that decides nothing: no call that gives the bit goes on (seccomp_unotify(2) says why). Giving a file the group that it
// already has means doing nothing. A list that equals a mode is set as by chmod(2). Any other list goes on, and the kernel gives nobody the
// bit by it.
void answer_set_gid_calls(UniqueFd questions, UniqueFd changer);

// --- An access control list that says no more than a mode does: owner, group and others.

// Three entries in the kernel's format (linux/posix_acl_xattr.h).
struct PlainList {
    std::uint32_t version;
    struct {
        std::uint16_t who;
        std::uint16_t may;
        std::uint32_t id;
    } entries[3];
};
static_assert(sizeof(PlainList) == plain_list_size);

// Empty for a list of anything else than those three.
inline std::optional<unsigned> mode_of(const PlainList &list)
{
    constexpr std::uint32_t known_version = 2;
    constexpr std::array<std::uint16_t, 3> owner_group_others = {0x01, 0x04, 0x20};
    unsigned mode = 0;
    for (std::size_t index = 0; index < owner_group_others.size(); ++index) {
        if (list.entries[index].who != owner_group_others[index] || list.entries[index].may > 7) return std::nullopt;
        mode = mode << 3U | list.entries[index].may;
    }
    return list.version == known_version ? std::optional(mode) : std::nullopt;
}

} // namespace pi_agent
