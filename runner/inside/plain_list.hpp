// An access control list that says no more than a mode does: owner, group and others.
#pragma once

#include "runner/filter/call_rules.hpp"

#include <array>
#include <optional>

namespace pi_agent {

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
