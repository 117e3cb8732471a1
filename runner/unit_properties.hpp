// The agent's unit as data: which properties, with which values. Pure, so that it can be tested and audited as a table.
#pragma once

#include "common/ids.hpp"
#include "runner/root_tree.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pi_agent {

// The D-Bus shapes that systemd wants (org.freedesktop.systemd1(5)).
struct NameFilter { // (bas)
    bool allow;
    std::vector<std::string> names;
};
struct BindList { // a(ssbt)
    std::vector<Bind> binds;
};
struct TemporaryFileSystems { // a(ss)
    std::vector<std::pair<std::string, std::string>> entries;
};
struct Command { // a(sasas), one command
    std::vector<std::string> arguments;
    std::vector<std::string> flags;
};
struct SignedNumber { // i
    std::int32_t value;
};
using PropertyValue = std::variant<bool, std::uint32_t, std::uint64_t, SignedNumber, std::string, std::vector<std::string>, NameFilter,
                                   BindList, TemporaryFileSystems, Command>;

struct UnitProperty {
    std::string name;
    PropertyValue value;
};

struct UnitPlan {
    std::string session_id;
    Uid user; // the caller
    Uid agent;
    Gid agent_group;
    std::vector<Gid> groups; // supplementary: the group that granted the root
    std::string root_directory;
    std::vector<Bind> binds;
    std::string home_path;
    std::string project_path;
};

// pi-agent-uUID.slice: all sessions of one user.
std::string slice_name(Uid user);
// That slice and those above it, which exist as long as somebody has a session.
std::vector<std::string> slice_chain(Uid user);

std::vector<UnitProperty> service_properties(const UnitPlan &plan);
std::vector<UnitProperty> scope_properties(Uid user);

} // namespace pi_agent
