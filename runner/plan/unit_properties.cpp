// The agent's unit as a table of properties: those of unit_properties.toml and the session's own. And the settings of drop-ins.
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/build_settings.hpp"

#include <csignal>
#include <numeric>

namespace pi_agent {

namespace {

constexpr const char *debuggers_calls[] = {
#include "runner/filter/trace_calls.inc"
};

// ProtectHome=yes would hide a project below a home, so there it is "tmpfs". systemd 252 and 257 make those tmpfs writable for everyone, so
// each is named again, read-only; the binds are put into them afterwards.
void add_homes(const SandboxPlan &plan, std::vector<UnitProperty> &properties)
{
    PairList filesystems{{{"/dev/shm", "mode=1777"}}};
    const bool below_home = std::any_of(plan.binds.begin(), plan.binds.end(), [](const Bind &bind) {
        return is_within(bind.target, "/home") || is_within(bind.target, "/root");
    });
    properties.push_back({"ProtectHome", std::string(below_home ? "tmpfs" : "yes")});
    if (below_home)
        for (const char *home : {"/home", "/root", "/run/user"})
            filesystems.entries.emplace_back(home, "ro");
    properties.push_back({"TemporaryFileSystem", filesystems});
}

// runner/root/kernel/host_facts.cpp asks the kernel whether it is in force.
void add_network(const SandboxPlan &plan, std::vector<UnitProperty> &properties)
{
    const NetworkMode mode = plan.network.mode;
    if (has_own_network(mode)) properties.push_back({"PrivateNetwork", true});
    if (mode != NetworkMode::loopback && mode != NetworkMode::listed) return;
    properties.push_back({"IPAddressDeny", AddressRanges{{{{0, 0, 0, 0}, 0}, {std::vector<std::uint8_t>(16), 0}}}});
    properties.push_back({"IPAddressAllow", AddressRanges{plan.network.allowed}});
}

// runner/root/kernel/host_facts.cpp asks the kernel whether the policy's limits are in force.
void add_limits(const LimitsPolicy &limits, std::vector<UnitProperty> &properties)
{
    if (limits.memory)
        properties.push_back({"MemoryMax", limits.memory->amount});
    else // for systemd all ones is everything
        properties.push_back(
            {"MemoryMaxScale", static_cast<std::uint32_t>(UINT32_MAX * in_force(limits, &LimitsPolicy::memory_share) / 100)});
    // A session that may have 8G and pushes 80 into the host's swap has not been held to 8G, and slows everybody down. Where the policy
    // sets no memory limit, swap stays as the host has it.
    if (limits.memory || limits.memory_share) properties.push_back({"MemorySwapMax", std::uint64_t{0}});
    for (const auto &row : limit_rows)
        if (const auto amount = in_force(limits, row); amount && row.property != nullptr)
            properties.push_back({row.property, *amount * row.factor});
}

// pi-agent-exec adds what needs arguments (runner/filter/calls.toml), and refuses tracing where nothing keeps it in the session. It
// also refuses what the policy does, because it makes some of these calls itself.
void add_calls(const SandboxPlan &plan, std::vector<UnitProperty> &properties)
{
    NameFilter granted{
        true, {"@system-service", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "personality"}};
    // @system-service allows these: io_uring goes around filters and RestrictAddressFamilies, the others reach into other processes,
    // keyrings or file handles.
    NameFilter not_granted{false,
                           {"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "pidfd_getfd", "add_key", "request_key",
                            "keyctl", "name_to_handle_at", "open_by_handle_at"}};
    auto &with_tracing = plan.tracing == Tracing::never ? not_granted : granted;
    with_tracing.names.insert(with_tracing.names.end(), std::begin(debuggers_calls), std::end(debuggers_calls));
    for (const std::string &name : allowed_calls_of(plan.calls)) {
        granted.names.push_back(name);
        std::erase(not_granted.names, name);
    }
    properties.push_back({"SystemCallFilter", granted});
    properties.push_back({"SystemCallFilter", not_granted});
    properties.push_back({"SystemCallErrorNumber", SignedNumber{EPERM}}); // systemd's default is to kill
}

// Every way in which a program can end.
ExitStatuses every_end()
{
    ExitStatuses ends{std::vector<std::int32_t>(255), std::vector<std::int32_t>(64)};
    std::iota(ends.statuses.begin(), ends.statuses.end(), 1);
    std::iota(ends.signals.begin(), ends.signals.end(), 1);
    return ends;
}

// What every session's unit has, whatever runs in it: its end, its network and its limits. Adds `more`.
std::vector<UnitProperty> unit_of(const SandboxPlan &plan, const std::string &program, const std::vector<UnitProperty> &more)
{
    const std::string scope = scope_name(plan.session_id);
    std::vector<UnitProperty> properties = {
        {"Slice", slice_name(plan.user)},
        {"BindsTo", std::vector<std::string>{scope}}, // whatever kills the runner (design rule 9)
        {"Requires", std::vector<std::string>{cleanup_name(plan.session_id)}},
        {"After", std::vector<std::string>{scope, cleanup_name(plan.session_id)}},
        {"ExecStart", Command{{program}}}, // not ExecStartEx=: systemd 252 cannot read that again after a reload
#include "runner/unit_both.inc"
#include "runner/unit_session.inc"
    };
    add_network(plan, properties);
    add_limits(plan.limits, properties);
    properties.insert(properties.end(), more.begin(), more.end());
    return properties;
}

std::vector<UnitProperty> account_and_view(const SandboxPlan &plan, const SystemdFeatures &features)
{
    const std::vector<UnitProperty> confinement = {
        {"User", std::to_string(plan.agent.value())},
        {"Group", std::to_string(plan.agent_group.value())},
        {"RootDirectory", plan.root_directory},
#include "runner/unit_agent.inc"
    };
    std::vector<UnitProperty> properties = unit_of(plan, build::exec_path, confinement);
    const auto groups = mapped(plan.groups, [&](const Gid group) { return std::to_string(group.value()); });
    if (!groups.empty()) properties.push_back({"SupplementaryGroups", groups});
    if (features.log_sockets) properties.push_back({"BindLogSockets", false});
    add_homes(plan, properties);
    BindList writable, read_only;
    for (const auto &bind : plan.binds)
        (bind.read_only ? read_only : writable).binds.push_back(bind);
    for (const auto &node : plan.devices)
        writable.binds.push_back({node, node, false}); // into the unit's own /dev
    properties.push_back({"BindPaths", writable});
    properties.push_back({"BindReadOnlyPaths", read_only});
    return properties;
}

std::vector<UnitProperty> engine_service_properties(const SandboxPlan &plan, bool is_docker)
{
    std::vector<UnitProperty> confinement = {
#include "runner/unit_engine.inc"
    };
    const std::vector<UnitProperty> of_docker = {
#include "runner/unit_docker.inc"
    };
    const PairList podman_places{{
#include "runner/unit_podman_places.inc"
    }};
    const std::vector<UnitProperty> of_podman = {
        {"TemporaryFileSystem", podman_places},
        // Not the tmpfs: the host's directory would cover it.
        {"ReadWritePaths", std::vector<std::string>{parent_of(plan.root_directory)}},
    };
    const auto &more = is_docker ? of_docker : of_podman;
    confinement.insert(confinement.end(), more.begin(), more.end());
    return unit_of(plan, build::engine_door_path, confinement);
}

// They schedule, count, log, limit and notify. The policy's own limits are asked of the kernel (runner/root/kernel/host_facts.cpp). The
// launcher gives the agent an environment and a umask of its own; ends are by KILL, and nothing is started again
// (the properties above).
constexpr std::string_view harmless_beginnings[] = {
#include "runner/harmless_beginnings.inc"
};
constexpr std::string_view harmless[] = {
#include "runner/harmless.inc"
};
// Begins like a harmless one, and ends the agent: node makes code at run time.
constexpr std::string_view no_code_at_run_time = "MemoryDenyWriteExecute";
// Of [Unit], these alone: dependencies can only be added, and conditions keep a session from starting.
constexpr std::string_view unit_in_the_way = "CollectMode RefuseManualStop StopWhenUnneeded";

bool is_in_the_way(std::string_view section, std::string_view key)
{
    if (section == "[Unit]") return has_word(unit_in_the_way, key);
    if (section == "[Install]" || section.starts_with("[X-")) return false;
    const auto begins = [&](std::string_view beginning) { return key.starts_with(beginning); };
    return key == no_code_at_run_time || (std::find(std::begin(harmless), std::end(harmless), key) == std::end(harmless) &&
                                          std::none_of(std::begin(harmless_beginnings), std::end(harmless_beginnings), begins));
}

} // namespace

std::string slice_name(Uid user)
{
    return user_slice_prefix + std::to_string(user.value()) + ".slice";
}

std::string place_in_slice(Uid user, const std::string &unit)
{
    return std::string(slices_place) + "/" + slice_name(user) + "/" + unit;
}

std::vector<UnitProperty> scope_properties(Uid user)
{
    return {
        {"Slice", slice_name(user)},
#include "runner/unit_scope.inc"
    };
}

std::vector<UnitProperty> cleanup_properties(const std::string &session_id, Uid user)
{
    return {
        {"Slice", slice_name(user)},
        {"ExecStop", Command{{build::cleanup_path, session_id}}},
#include "runner/unit_cleanup.inc"
    };
}

std::vector<UnitProperty> session_properties(SandboxMethod method, const SandboxPlan &plan, const SystemdFeatures &features)
{
    if (method != SandboxMethod::none && method != SandboxMethod::systemd)
        return engine_service_properties(plan, method == SandboxMethod::docker);
    std::vector<UnitProperty> properties = account_and_view(plan, features);
    if (method == SandboxMethod::none) {
        // The user owns what is made in the project. The property refuses directories, too: the launcher's filter tells them from files.
        properties.push_back({"RestrictSUIDSGID", true});
        return properties;
    }
    std::vector<std::string> writable = {plan.home_path, "/tmp", "/var/tmp"};
    writable.insert(writable.end(), plan.writable_roots.begin(), plan.writable_roots.end());
    const bool maps_others = features.identity_ids && std::max(plan.agent.value(), plan.agent_group.value()) < identity_ids;
    const std::vector<UnitProperty> confinement = {
        {"ReadWritePaths", writable},
        // A user namespace whose ids are the same as on the host, so that capabilities count for nothing outside and processes outside
        // cannot be traced. An id that it does not map cannot be written into an access control list, not even as a copy of an existing
        // entry (acl(5)), so it maps all that systemd can. The project's id map has exchanged the user and the agent before
        // (runner/root/mount/mounts.hpp). No mapped id gives the agent a right, because it has no capability to use one with.
        maps_others ? UnitProperty{"PrivateUsersEx", std::string("identity")} : UnitProperty{"PrivateUsers", true},
#include "runner/unit_confined.inc"
    };
    properties.insert(properties.end(), confinement.begin(), confinement.end());
    add_calls(plan, properties);
    PairList devices;
    for (const auto &node : plan.devices)
        devices.entries.emplace_back(node, "rw"); // the session cannot make them
    if (!plan.devices.empty()) properties.push_back({"DeviceAllow", devices});
    if (features.private_pids) properties.push_back({"PrivatePIDs", std::string("yes")});
    return properties;
}

// The settings that a host may have for all of its services, and so for sessions: an allowlist, because systemd gets new ones.

std::vector<std::string> settings_in_the_way(std::string_view text)
{
    std::vector<std::string> found;
    std::string_view section;
    bool goes_on = false;
    for (const std::string_view whole : split(text, '\n')) {
        const std::string_view line = trimmed(whole);
        const bool is_comment = line.starts_with('#') || line.starts_with(';'); // also between the lines of one setting
        if (is_comment || (line.empty() && !goes_on)) continue;
        if (std::exchange(goes_on, line.ends_with('\\'))) continue;
        if (line.starts_with('[')) {
            section = line;
            continue;
        }
        const std::string key(trimmed(line.substr(0, line.find('='))));
        if (is_in_the_way(section, key) && std::find(found.begin(), found.end(), key) == found.end()) found.push_back(key);
    }
    return found;
}

void require_harmless_drop_in(const std::string &file, std::string_view text)
{
    const std::vector<std::string> found = settings_in_the_way(text);
    if (found.empty()) return;
    const auto keys = joined(found, ", ", [&](const auto &key) { return escape_for_display(key) + "="; });
    throw Failure(FailureKind::sandbox_method, "the host changes the session's unit: " + escape_for_display(file) + " sets " + keys +
                                                   ", which could weaken the sandbox. " + without_drop_ins);
}

} // namespace pi_agent
