// The agent's unit as data: which properties, with which values, and what a host's own drop-ins may change in it.
#pragma once

#include "runner/plan/limits.hpp"
#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

// The agent's unit as data: which properties, with which values. Pure, so that it can be tested and audited as a table.

// The D-Bus shapes that systemd wants (org.freedesktop.systemd1(5)).
struct NameFilter { // (bas)
    bool allow;
    std::vector<std::string> names;
};
struct BindList { // a(ssbt)
    std::vector<Bind> binds;
};
struct PairList { // a(ss)
    std::vector<std::pair<std::string, std::string>> entries;
};
struct Command { // a(sasb), one command
    std::vector<std::string> arguments;
};
struct SignedNumber { // i
    std::int32_t value;
};
struct ExitStatuses { // (aiai)
    std::vector<std::int32_t> statuses;
    std::vector<std::int32_t> signals;
};
struct AddressRanges { // a(iayu)
    std::vector<IpRange> ranges;
};
using PropertyValue = std::variant<bool, std::uint32_t, std::uint64_t, SignedNumber, std::string, std::vector<std::string>, NameFilter,
                                   BindList, PairList, Command, ExitStatuses, AddressRanges>;

struct UnitProperty {
    std::string name;
    PropertyValue value;
};

// Whether the user namespace of method systemd maps other ids, too, or only root's and the agent's.
bool knows_other_ids(const SystemdFeatures &features, Uid agent, Gid agent_group);

constexpr const char *user_slice_prefix = "pi-agent-u";
// Where the slices of all users are, below systemd's own group: each dash in a slice's name is a level (systemd.slice(5)).
constexpr const char *slices_place = "/pi.slice/pi-agent.slice";

// pi-agent-uUID.slice: all sessions of one user.
std::string slice_name(Uid user);
// Where a unit in that slice is.
std::string place_in_slice(Uid user, const std::string &unit);

// The unit of a session whose method has one. In the unit of a container root's podman makes it; docker's starts only its client, and the
// container joins the unit.
std::vector<UnitProperty> session_properties(SandboxMethod method, const SandboxPlan &plan, const SystemdFeatures &features);
// Lifetime, account, view of files, network and limits; the second also has what confines the agent, beside the launcher's filters.
std::vector<UnitProperty> plain_service_properties(const SandboxPlan &plan, const SystemdFeatures &features);
std::vector<UnitProperty> service_properties(const SandboxPlan &plan, const SystemdFeatures &features);
std::vector<UnitProperty> scope_properties(Uid user);
// The unit that removes the session's directory when the agent's unit has ended, in the host's own namespaces. As an ExecStopPost= of the
// agent's unit it would run, as root, among mounts whose targets the agent can move.
std::vector<UnitProperty> cleanup_properties(const std::string &session_id, Uid user);

// What a host's own drop-ins may change in the units of a session (systemd.unit(5), service.d).

// How an administrator leaves pi-agent's units out.
inline constexpr const char *without_drop_ins = "A drop-in for all services is in the way: an empty file of its name in "
                                                "/etc/systemd/system/pi-agent-.service.d leaves pi-agent's units "
                                                "out (systemd-delta --type=extended lists drop-ins)";

// The settings of a drop-in that may weaken what confines a session, or start something else in it, in their order.
std::vector<std::string> settings_in_the_way(std::string_view text);

// Throws Failure(unavailable) that names the file and its settings.
void require_harmless_drop_in(const std::string &file, std::string_view text);

} // namespace pi_agent
