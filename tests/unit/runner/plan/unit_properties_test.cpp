// The agent's unit as a table, held against the design's list: runner/plan/sandbox_plan.hpp
#include "runner/plan/sandbox_plan.hpp"

#include "common/base/text.hpp"
#include "runner/root/session/session_directory.hpp"
#include "support/failure.hpp"

#include <algorithm>
#include <cerrno>
#include <doctest/doctest.h>
#include <set>

using namespace pi_agent;
using pi_agent::test::has;

namespace unit_properties_test {

namespace {

const std::string id = "0123456789abcdef0123456789abcdef";

SandboxPlan plan_for(const std::string &project)
{
    const std::string session = "/run/pi-agent/sessions/" + id;
    return SandboxPlan{id,
                       Uid(1000),
                       Uid(990),
                       Gid(991),
                       {},
                       {},
                       session + "/root",
                       {Bind{session + "/home", "/var/lib/pi-agent/users/alice/home", false}, Bind{session + "/project", project, false},
                        Bind{session + "/run", "/run", true}},
                       "/var/lib/pi-agent/users/alice/home",
                       {project},
                       {}};
}

std::vector<UnitProperty> service_properties(const SandboxPlan &plan)
{
    return session_properties(SandboxMethod::systemd, plan, systemd_features("252.39-1~deb12u1"));
}

std::vector<PropertyValue> values_of(const std::vector<UnitProperty> &properties, const std::string &name)
{
    std::vector<PropertyValue> values;
    for (const auto &property : properties)
        if (property.name == name) values.push_back(property.value);
    return values;
}

template <typename Value>
Value only(const std::vector<UnitProperty> &properties, const std::string &name)
{
    const auto values = values_of(properties, name);
    REQUIRE_MESSAGE(values.size() == 1, name);
    REQUIRE_MESSAGE(std::holds_alternative<Value>(values[0]), name);
    return std::get<Value>(values[0]);
}

// Every text in a value, however deep.
struct Texts {
    std::vector<std::string> operator()(bool) const { return {}; }
    std::vector<std::string> operator()(std::uint32_t) const { return {}; }
    std::vector<std::string> operator()(std::uint64_t) const { return {}; }
    std::vector<std::string> operator()(SignedNumber) const { return {}; }
    std::vector<std::string> operator()(const ExitStatuses &) const { return {}; }
    std::vector<std::string> operator()(const std::string &value) const { return {value}; }
    std::vector<std::string> operator()(const std::vector<std::string> &value) const { return value; }
    std::vector<std::string> operator()(const NameFilter &value) const { return value.names; }
    std::vector<std::string> operator()(const BindList &value) const
    {
        std::vector<std::string> texts;
        for (const auto &bind : value.binds)
            texts.insert(texts.end(), {bind.source, bind.target});
        return texts;
    }
    std::vector<std::string> operator()(const PairList &value) const
    {
        std::vector<std::string> texts;
        for (const auto &[path, options] : value.entries)
            texts.insert(texts.end(), {path, options});
        return texts;
    }
    std::vector<std::string> operator()(const Command &value) const { return value.arguments; }
    std::vector<std::string> operator()(const AddressRanges &value) const
    {
        std::vector<std::string> texts;
        for (const auto &range : value.ranges)
            texts.push_back(to_string(range));
        return texts;
    }
};

} // namespace

TEST_CASE("the network is what the policy says: nothing of it denied, all of it but some ranges, or none of the host's")
{
    SandboxPlan plan = plan_for("/srv/app");
    for (const char *name : {"IPAddressDeny", "IPAddressAllow", "PrivateNetwork"})
        CHECK_MESSAGE(values_of(service_properties(plan), name).empty(), name);
    plan.network = {NetworkMode::none, {}, {}};
    CHECK(only<bool>(service_properties(plan), "PrivateNetwork"));
    CHECK(values_of(service_properties(plan), "IPAddressAllow").empty());
    plan.network = {NetworkMode::loopback, loopback_ranges(), {}};
    CHECK(Texts()(only<AddressRanges>(service_properties(plan), "IPAddressDeny")) == std::vector<std::string>{"0.0.0.0/0", "::/0"});
    CHECK(Texts()(only<AddressRanges>(service_properties(plan), "IPAddressAllow")) == std::vector<std::string>{"127.0.0.0/8", "::1/128"});
    plan.network = {NetworkMode::listed, {{{10, 0, 0, 0}, 8}}, {}};
    CHECK(Texts()(only<AddressRanges>(service_properties(plan), "IPAddressDeny")).size() == 2);
    CHECK(Texts()(only<AddressRanges>(service_properties(plan), "IPAddressAllow")) == std::vector<std::string>{"10.0.0.0/8"});
    CHECK(values_of(service_properties(plan), "PrivateNetwork").empty());
    // In every mode: an agent's own servers need them.
    CHECK(only<NameFilter>(service_properties(plan), "RestrictAddressFamilies").names ==
          std::vector<std::string>{"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"});
}

TEST_CASE("switches of the hardening are all on")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    for (const std::string name :
         {"NoNewPrivileges", "PrivateTmp", "PrivateDevices", "PrivateIPC", "PrivateUsers", "ProtectKernelModules", "ProtectKernelLogs",
          "ProtectControlGroups", "ProtectClock", "ProtectHostname", "RestrictRealtime", "RemoveIPC", "SendSIGKILL", "AddRef"}) {
        CHECK_MESSAGE(only<bool>(properties, name), name);
    }
}

TEST_CASE("the user namespace knows the ids that systemd can map, and always the agent's own")
{
    SandboxPlan plan = plan_for("/srv/app");
    const auto newer = systemd_features("257.9-1~deb13u1");
    const auto of = [&] { return session_properties(SandboxMethod::systemd, plan, newer); };
    CHECK(only<std::string>(of(), "PrivateUsersEx") == "identity");
    CHECK(values_of(of(), "PrivateUsers").empty());
    CHECK(values_of(service_properties(plan), "PrivateUsersEx").empty());
    plan.agent = Uid(65'535);
    CHECK(only<std::string>(of(), "PrivateUsersEx") == "identity");
    plan.agent = Uid(65'536); // it would not be mapped itself
    CHECK(only<bool>(of(), "PrivateUsers"));
    CHECK(values_of(of(), "PrivateUsersEx").empty());
    plan.agent = Uid(990);
    plan.agent_group = Gid(65'536);
    CHECK(only<bool>(of(), "PrivateUsers"));
    CHECK(values_of(of(), "PrivateUsersEx").empty());
}

TEST_CASE("texts of the hardening are the strictest that the agent lives with")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    for (const auto &[name, value] : {std::pair<const char *, const char *>{"ProtectSystem", "strict"},
                                      {"ProtectProc", "invisible"},
                                      {"KeyringMode", "private"},
                                      {"KillMode", "control-group"},
                                      {"DevicePolicy", "closed"},
                                      {"Type", "exec"},
                                      {"StandardOutput", "null"},
                                      {"StandardError", "null"},
                                      {"Description", "pi-agent-session"},
                                      {"CollectMode", "inactive-or-failed"}})
        CHECK(only<std::string>(properties, name) == value);
}

TEST_CASE("devices are mounted and allowed node by node, and may not be made")
{
    SandboxPlan plan = plan_for("/srv/app");
    CHECK(values_of(service_properties(plan), "DeviceAllow").empty());
    plan.devices = {"/dev/dri/card0", "/dev/kvm"};
    const auto properties = service_properties(plan);
    CHECK(Texts()(only<PairList>(properties, "DeviceAllow")) == std::vector<std::string>{"/dev/dri/card0", "rw", "/dev/kvm", "rw"});
    CHECK(only<std::string>(properties, "DevicePolicy") == "closed");
    const auto binds = only<BindList>(properties, "BindPaths").binds;
    CHECK(std::count_if(binds.begin(), binds.end(),
                        [](const Bind &bind) { return bind.source == "/dev/kvm" && bind.target == "/dev/kvm"; }) == 1);
}

TEST_CASE("numbers of the hardening leave nothing")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    for (const std::string name : {"CapabilityBoundingSet", "AmbientCapabilities", "RestrictNamespaces", "LimitCORE"})
        CHECK_MESSAGE(only<std::uint64_t>(properties, name) == 0, name);
    CHECK(only<std::uint64_t>(properties, "TimeoutStopUSec") == 2'000'000);
    CHECK(only<std::uint32_t>(properties, "UMask") == 077);
    CHECK(only<std::uint64_t>(properties, "TasksMax") == 4096);
    // Most of the memory, never all of it; all ones would be all.
    CHECK(only<std::uint32_t>(properties, "MemoryMaxScale") > UINT32_MAX / 10 * 7);
    CHECK(only<std::uint32_t>(properties, "MemoryMaxScale") < UINT32_MAX / 10 * 9);
    CHECK(only<SignedNumber>(properties, "SystemCallErrorNumber").value == EPERM);
}

TEST_CASE("limits that the policy says take the place of the defaults")
{
    SandboxPlan plan = plan_for("/srv/app");
    auto properties = service_properties(plan);
    for (const std::string name : {"MemoryMax", "MemorySwapMax", "CPUQuotaPerSecUSec", "RuntimeMaxUSec"})
        CHECK_MESSAGE(values_of(properties, name).empty(), name);
    plan.limits.memory = SaidLimit{std::uint64_t{8} << 30U, "8G", {}};
    plan.limits.tasks = SaidLimit{128, "128", {}};
    plan.limits.cpu = SaidLimit{250, "250%", {}};
    plan.limits.runtime = SaidLimit{90, "90s", {}};
    properties = service_properties(plan);
    CHECK(only<std::uint64_t>(properties, "MemoryMax") == std::uint64_t{8} << 30U);
    CHECK(values_of(properties, "MemoryMaxScale").empty());
    CHECK(only<std::uint64_t>(properties, "MemorySwapMax") == 0);
    CHECK(only<std::uint64_t>(properties, "TasksMax") == 128);
    CHECK(only<std::uint64_t>(properties, "CPUQuotaPerSecUSec") == 2'500'000);
    CHECK(only<std::uint64_t>(properties, "RuntimeMaxUSec") == 90'000'000);
}

TEST_CASE("a share of memory stays one, as systemd counts it")
{
    SandboxPlan plan = plan_for("/srv/app");
    plan.limits.memory_share = SaidLimit{50, "50%", {}};
    const auto properties = service_properties(plan);
    CHECK(only<std::uint32_t>(properties, "MemoryMaxScale") == UINT32_MAX / 2);
    CHECK(values_of(properties, "MemoryMax").empty());
    CHECK(only<std::uint64_t>(properties, "MemorySwapMax") == 0);
}

TEST_CASE("the agent's processes are killed for want of memory before the runner, one at a time; the runner's scope has no limit")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    CHECK(only<SignedNumber>(properties, "OOMScoreAdjust").value == 500);
    CHECK(only<std::string>(properties, "OOMPolicy") == "continue");
    for (const std::string name : {"MemoryMax", "MemoryMaxScale", "TasksMax", "CPUQuotaPerSecUSec", "RuntimeMaxUSec", "OOMScoreAdjust"})
        CHECK_MESSAGE(values_of(scope_properties(Uid(1000)), name).empty(), name);
}

TEST_CASE("the unit has no property that breaks the agent or loosens the sandbox")
{
    const auto properties = service_properties(plan_for("/home/alice/projects"));
    for (const std::string name : {"MemoryDenyWriteExecute", "Environment", "EnvironmentFile", "PassEnvironment", "WorkingDirectory",
                                   "Delegate", "RootImage", "TTYPath", "ExecStartEx", "ExecStartPre", "ExecStopPost", "ExecStopPostEx",
                                   "ExecStop", "StandardInput", "BindMounts", "DeviceAllow", "PrivateMounts", "MountFlags"})
        CHECK_MESSAGE(values_of(properties, name).empty(), name);
}

TEST_CASE("no property is given twice, but for the two lists of system calls")
{
    for (const std::string project : {"/srv/app", "/home/alice/projects"}) {
        std::set<std::string> seen;
        for (const auto &property : service_properties(plan_for(project)))
            if (property.name != "SystemCallFilter") CHECK_MESSAGE(seen.insert(property.name).second, property.name);
    }
}

TEST_CASE("the unit lives and dies with the runner's scope")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    const std::vector<std::string> scope = {scope_name(id)};
    CHECK(only<std::vector<std::string>>(properties, "BindsTo") == scope);
    CHECK(only<std::vector<std::string>>(properties, "After") == std::vector<std::string>{scope[0], cleanup_name(id)});
    CHECK(only<std::string>(properties, "Slice") == "pi-agent-u1000.slice");
}

TEST_CASE("the unit runs as the agent by number, never as a name that could be looked up")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    CHECK(only<std::string>(properties, "User") == "990");
    CHECK(only<std::string>(properties, "Group") == "991");
}

TEST_CASE("the agent carries the group that granted the root, and none without one")
{
    SandboxPlan plan = plan_for("/srv/app");
    CHECK(values_of(service_properties(plan), "SupplementaryGroups").empty());
    plan.groups = {Gid(1234)};
    CHECK(only<std::vector<std::string>>(service_properties(plan), "SupplementaryGroups") == std::vector<std::string>{"1234"});
    plan.groups = {Gid(1234), Gid(4294967294)};
    CHECK(only<std::vector<std::string>>(service_properties(plan), "SupplementaryGroups") ==
          std::vector<std::string>{"1234", "4294967294"});
}

TEST_CASE("only state, project and temporary directories are writable")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    CHECK(only<std::vector<std::string>>(properties, "ReadWritePaths") ==
          std::vector<std::string>{"/var/lib/pi-agent/users/alice/home", "/tmp", "/var/tmp", "/srv/app"});
    CHECK(only<std::string>(properties, "RootDirectory") == "/run/pi-agent/sessions/" + id + "/root");
    const auto targets = [](const BindList &list) {
        std::vector<std::string> texts;
        for (const auto &bind : list.binds)
            texts.push_back(bind.target);
        return texts;
    };
    CHECK(targets(only<BindList>(properties, "BindPaths")) == std::vector<std::string>{"/var/lib/pi-agent/users/alice/home", "/srv/app"});
    CHECK(targets(only<BindList>(properties, "BindReadOnlyPaths")) == std::vector<std::string>{"/run"});
}

TEST_CASE("homes are hidden, and are empty read-only file systems where the project lies below one")
{
    struct Row {
        std::string project;
        std::string protect_home;
    };
    for (const Row &row : {Row{"/srv/app", "yes"},
                           {"/opt/home/x", "yes"},
                           {"/homework/x", "yes"},
                           {"/home2/x", "yes"},
                           {"/rooted/x", "yes"},
                           {"/var/home/alice", "yes"},
                           {"/home/alice/projects", "tmpfs"},
                           {"/home/x", "tmpfs"},
                           {"/root/x", "tmpfs"}}) {
        CAPTURE(row.project);
        const auto properties = service_properties(plan_for(row.project));
        CHECK(only<std::string>(properties, "ProtectHome") == row.protect_home);
        const auto entries = only<PairList>(properties, "TemporaryFileSystem").entries;
        using Entries = std::vector<std::pair<std::string, std::string>>;
        if (std::string(row.protect_home) == "yes")
            CHECK((entries == Entries{{"/dev/shm", "mode=1777"}}));
        else
            CHECK((entries == Entries{{"/dev/shm", "mode=1777"}, {"/home", "ro"}, {"/root", "ro"}, {"/run/user", "ro"}}));
    }
}

TEST_CASE("where no filter of ours judges arguments, systemd refuses set-id bits altogether")
{
    const auto plan = plan_for("/srv/app");
    CHECK(values_of(service_properties(plan), "RestrictSUIDSGID").empty()); // it refuses directories, too
    CHECK(only<bool>(session_properties(SandboxMethod::none, plan, {}), "RestrictSUIDSGID"));
}

TEST_CASE("only local, internet and netlink sockets, only native system calls")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    const auto families = only<NameFilter>(properties, "RestrictAddressFamilies");
    CHECK(families.allow);
    CHECK(families.names == std::vector<std::string>{"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"});
    CHECK(only<std::vector<std::string>>(properties, "SystemCallArchitectures") == std::vector<std::string>{"native"});
}

TEST_CASE("system calls are an allowed list, with what goes around other restrictions taken out again")
{
    const auto values = values_of(service_properties(plan_for("/srv/app")), "SystemCallFilter");
    REQUIRE(values.size() == 2);
    const auto allowed = std::get<NameFilter>(values[0]); // the first decides whether the list allows or denies
    const auto denied = std::get<NameFilter>(values[1]);
    CHECK(allowed.allow);
    CHECK(allowed.names.front() == "@system-service");
    for (const auto &name : allowed.names)
        CHECK_MESSAGE((name[0] != '@' || name == "@system-service"), name); // no @privileged, no @mount
    CHECK_FALSE(denied.allow);
    for (const std::string name : {"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "pidfd_getfd", "add_key",
                                   "request_key", "keyctl", "name_to_handle_at", "open_by_handle_at"})
        CHECK_MESSAGE(std::count(denied.names.begin(), denied.names.end(), name) == 1, name);
}

TEST_CASE("what debuggers call is in the unit's list unless the policy refuses it")
{
    for (const auto tracing : {Tracing::automatic, Tracing::always, Tracing::never}) {
        SandboxPlan plan = plan_for("/srv/app");
        plan.tracing = tracing;
        const auto values = values_of(service_properties(plan), "SystemCallFilter");
        REQUIRE(values.size() == 2);
        for (const auto &value : values) {
            const auto list = std::get<NameFilter>(value);
            for (const std::string name : {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"})
                CHECK_MESSAGE((std::count(list.names.begin(), list.names.end(), name) == 1) == (list.allow != (tracing == Tracing::never)),
                              name);
        }
    }
}

TEST_CASE("what the policy allows is in the unit's list, and the launcher refuses what it denies")
{
    SandboxPlan plan = plan_for("/srv/app");
    plan.calls.denied = {{"@memlock", {}}};
    plan.calls.allowed = {{"name_to_handle_at", {}}, {"personality", {}}, {"mincore", {}}};
    plan.calls.families = {{"inet", {}}};
    const auto has_name = [](const NameFilter &list, const std::string &name) {
        return std::find(list.names.begin(), list.names.end(), name) != list.names.end();
    };
    const auto properties = session_properties(SandboxMethod::systemd, plan, SystemdFeatures{});
    const auto values = values_of(properties, "SystemCallFilter");
    REQUIRE(values.size() == 2);
    for (const std::string name : {"name_to_handle_at", "personality", "mincore"}) {
        CHECK_MESSAGE(has_name(std::get<NameFilter>(values[0]), name), name);
        CHECK_MESSAGE(!has_name(std::get<NameFilter>(values[1]), name), name);
    }
    CHECK_FALSE(has_name(std::get<NameFilter>(values[1]), "mlockall"));
    const auto families = only<NameFilter>(properties, "RestrictAddressFamilies");
    CHECK(families.names.size() == 4U);
    CHECK(has_name(families, "AF_INET"));
}

TEST_CASE("the unit starts the launcher and runs nothing as root")
{
    const auto properties = service_properties(plan_for("/srv/app"));
    const auto start = only<Command>(properties, "ExecStart");
    REQUIRE(start.arguments.size() == 1);
    CHECK(has(start.arguments[0], "/pi-agent-exec"));
}

TEST_CASE("the cleanup unit stops with the agent's, and cleans then, in the host's namespaces")
{
    const auto properties = cleanup_properties(id, Uid(1000));
    const auto stop = only<Command>(properties, "ExecStop");
    REQUIRE(stop.arguments.size() == 2);
    CHECK(has(stop.arguments[0], "/pi-agent-cleanup"));
    CHECK(stop.arguments[1] == id);
    CHECK(only<bool>(properties, "StopWhenUnneeded"));
    for (const std::string name : {"RootDirectory", "BindPaths", "BindReadOnlyPaths", "TemporaryFileSystem", "User"})
        CHECK_MESSAGE(values_of(properties, name).empty(), name);
    CHECK(only<std::vector<std::string>>(service_properties(plan_for("/srv/app")), "Requires") ==
          std::vector<std::string>{cleanup_name(id)});
}

TEST_CASE("no value holds a byte outside the alphabet of properties")
{
    SandboxPlan plan = plan_for("/home/alice/projects");
    plan.groups = {Gid(5)};
    for (const auto &properties : {service_properties(plan), scope_properties(Uid(4294967294))})
        for (const auto &property : properties)
            for (const auto &text : std::visit(Texts{}, property.value)) {
                CHECK_MESSAGE(is_property_safe(text), property.name, " has ", text);
                CHECK_MESSAGE(!text.empty(), property.name);
            }
}

TEST_CASE("no value says whose session it is or what was asked")
{
    for (const auto &property : service_properties(plan_for("/srv/app")))
        if (property.name == "Description") CHECK(std::get<std::string>(property.value) == "pi-agent-session");
    for (const auto &property : scope_properties(Uid(1000)))
        if (property.name == "Description") CHECK(std::get<std::string>(property.value) == "pi-agent-runner");
}

TEST_CASE("all sessions of one user share one slice, and no two users do")
{
    CHECK(slice_name(Uid(1000)) == "pi-agent-u1000.slice");
    CHECK(slice_name(Uid(4294967294)) == "pi-agent-u4294967294.slice");
    CHECK(place_in_slice(Uid(1000), "run.scope") == "/pi.slice/pi-agent.slice/pi-agent-u1000.slice/run.scope");
    CHECK(only<std::string>(scope_properties(Uid(1000)), "Slice") == "pi-agent-u1000.slice");
    CHECK(only<std::string>(scope_properties(Uid(1000)), "CollectMode") == "inactive-or-failed");
}

TEST_CASE("process numbers of its own and no log of the host where systemd knows the words, and no property that systemd lacks")
{
    SandboxPlan plan = plan_for("/srv/app");
    CHECK(values_of(service_properties(plan), "PrivatePIDs").empty());
    CHECK(values_of(service_properties(plan), "BindLogSockets").empty());
    const auto newer = session_properties(SandboxMethod::systemd, plan, systemd_features("257.9-1~deb13u1"));
    CHECK(only<std::string>(newer, "PrivatePIDs") == "yes");
    CHECK(only<bool>(newer, "BindLogSockets") == false);
}

TEST_CASE("a project in the agent's home needs no other writable path, and no home is shown")
{
    SandboxPlan plan = plan_for("/home/alice/projects");
    plan.writable_roots.clear();
    plan.binds = {{"/run/pi-agent/sessions/ID/home", plan.home_path, false}};
    const auto properties = service_properties(plan);
    CHECK(only<std::vector<std::string>>(properties, "ReadWritePaths") ==
          std::vector<std::string>{"/var/lib/pi-agent/users/alice/home", "/tmp", "/var/tmp"});
    CHECK(only<std::string>(properties, "ProtectHome") == "yes");
}

TEST_CASE("a session is never restarted, and however its agent ends, its unit has not failed")
{
    const auto properties = service_properties(plan_for("/srv/a"));
    CHECK(only<bool>(properties, "RefuseManualStop"));
    for (const char *list : {"SuccessExitStatus", "RestartPreventExitStatus"}) {
        const auto ends = only<ExitStatuses>(properties, list);
        CHECK_MESSAGE((ends.statuses.size() == 255 && ends.statuses.front() == 1 && ends.statuses.back() == 255), list);
        CHECK_MESSAGE((ends.signals.size() == 64 && ends.signals.front() == 1 && ends.signals.back() == 64), list);
    }
}

} // namespace unit_properties_test
