// The unit of a session behind the interface that all methods share.
#include "runner/root/method/sandbox_methods.hpp"

#include "common/host/trusted_file.hpp"
#include "runner/plan/gate_plan.hpp"
#include "runner/root/kernel/enforcement.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/session_directory.hpp"

#include <thread>

namespace pi_agent {

namespace {

constexpr int gate_end_seconds = 4;
constexpr std::size_t drop_in_limit = std::size_t{1} << 20U;

} // namespace

SystemdSandbox::SystemdSandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user)
    : Sandbox(root, method, std::move(session_id), user), service_(service_name(id())), bus_(root)
{
    watch(bus_.fd());
}

void SystemdSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    MoveIntoScope move(bus_, scope_name(id()), user()); // whatever fails meanwhile, this waits for the move
    meanwhile();
    bus_.watch_service(service_);
    features_ = systemd_features(bus_.version());
    move.wait();
    fault_point("in-its-scope");
    sweep_empty_scopes(bus_, id());
}

void SystemdSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    start_unit(plan, {launcher, FdRef(-1), FdRef(-1)});
}

void SystemdSandbox::start_unit(const SandboxPlan &plan, const ServiceStreams &streams)
{
    bus_.start_service(service_, properties(plan), CompanionUnit{cleanup_name(id()), cleanup_properties(id(), user())}, streams);
    was_taken_in_ = true;
    fault_point("unit-asked-for");
}

std::vector<UnitProperty> SystemdSandbox::properties(const SandboxPlan &plan) const
{
    switch (method()) {
    case SandboxMethod::podman:
        return podman_service_properties(plan);
    case SandboxMethod::docker:
        return docker_service_properties(plan);
    case SandboxMethod::none:
        return plain_service_properties(plan, features_);
    case SandboxMethod::systemd:
    case SandboxMethod::bwrap: // has no unit
        break;
    }
    return service_properties(plan, features_);
}

// By way of the unit that it needs, because it refuses to be stopped by itself (runner/plan/unit_properties.cpp).
void SystemdSandbox::stop()
{
    bus_.stop_unit(cleanup_name(id()));
}

void SystemdSandbox::require_confined()
{
    if (!defence_is_on("unit-drop-ins")) return;
    std::vector<std::string> units = {service_};
    if (has_gate_) units.push_back(gate_name(id()));
    for (const auto &unit : units)
        for (const auto &file : bus_.drop_ins(unit))
            require_harmless_drop_in(file, read_trusted_file(file, drop_in_limit, "drop-in of systemd"));
}

void SystemdSandbox::kill()
{
    kill_group(*group());
}

std::optional<ControlGroup> SystemdSandbox::group() const
{
    return group_beside_runner(id(), service_);
}

// Asks the kernel while there is a group: systemd's answer takes long where it matters (service_watch.hpp).
UnitUsage SystemdSandbox::usage()
{
    return if_it_can_be_read([&] {
        const UnitUsage usage = usage_of(*group());
        return usage.cpu_usec ? usage : bus_.service_usage();
    });
}

// The namespace of the launcher, which is then alone in the unit, except for the process that started it and is about to end.
// That one is in the network namespace already, and in no mount namespace of the session's.
UniqueFd SystemdSandbox::namespace_of_launcher(const char *kind, const char *missing)
{
    struct stat own {};
    if (stat((std::string("/proc/self/ns/") + kind).c_str(), &own) != 0) throw_errno("reading an own namespace");
    UniqueFd found;
    const bool is_shared = std::string(kind) == "net";
    ino_t inode = 0;
    for (const pid_t pid : processes()) {
        UniqueFd one = UniqueFd::adopt(open(("/proc/" + std::to_string(pid) + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC));
        struct stat facts {};
        if (!one || fstat(one.get(), &facts) != 0 || facts.st_ino == own.st_ino) continue;
        if (found && is_shared && facts.st_ino == inode) continue;
        if (found) throw Failure(ExitStatus::internal, "the session has more processes than its launcher before its agent starts");
        const std::vector<pid_t> still = processes(); // so nobody else has its number by now
        if (std::find(still.begin(), still.end(), pid) != still.end()) {
            found = std::move(one);
            inode = facts.st_ino;
        }
    }
    if (!found) throw Failure(FailureKind::sandbox_method, missing);
    return found;
}

UniqueFd SystemdSandbox::mount_namespace()
{
    return namespace_of_launcher("mnt", "systemd made no mount namespace for the session");
}

UniqueFd SystemdSandbox::network_namespace()
{
    return namespace_of_launcher("net", "systemd made no network namespace for the session");
}

void SystemdSandbox::start_gate(const GateRoot &root, FdRef channel, FdRef says)
{
    bus_.ask_for_program(gate_name(id()), gate_properties(id(), user(), features_, root), {channel, says, FdRef(-1)});
    has_gate_ = true;
}

std::string SystemdSandbox::refusal_of_gate(const GateRoot &root)
{
    if (bus_.unit_exists(gate_name(id()))) return "";
    try {
        bus_.start_program(gate_name(id()), gate_properties(id(), user(), features_, root), {FdRef(-1), FdRef(-1), FdRef(-1)});
    } catch (const Failure &failure) {
        return failure.what();
    }
    return ""; // it was started before, and has ended; this one ends, because it has no channel
}

// A process that systemd has just made for the gate may not be in the gate's group yet: it ends because its channel has.
void SystemdSandbox::end_gate()
{
    const std::string gate = gate_name(id());
    for (const Deadline deadline = in_seconds(gate_end_seconds); bus_.unit_exists(gate);
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        kill_gate();
        if (Clock::now() >= deadline) throw Failure(ExitStatus::system_failure, gate + " does not end");
    }
}

void SystemdSandbox::kill_gate()
{
    kill_group(group_beside_runner(id(), gate_name(id())));
}

std::vector<pid_t> SystemdSandbox::processes()
{
    return processes_in(*group());
}

bool SystemdSandbox::is_there()
{
    try {
        return bus_.unit_exists(service_);
    } catch (const Failure &) { // the bus is gone
        // With this process's scope the unit ends in any case. A unit that systemd has accepted brings its own cleanup unit, which also
        // knows what an engine left elsewhere. For any other one the kernel knows its processes, and an engine itself counts.
        return was_taken_in_ || !SystemdSandbox::processes().empty();
    }
}

bool SystemdSandbox::may_live(const std::string &session_id)
{
    return bus_.unit_exists(service_name(session_id)) || bus_.unit_exists(scope_name(session_id)) ||
           bus_.unit_exists(cleanup_name(session_id));
}

std::string SystemdSandbox::explain(const SandboxResult &result)
{
    const std::string how = result.result == "success" ? "" : result.result + ", "; // every end counts as one
    return "systemd could not prepare the sandbox (" + how + "status " + std::to_string(result.status) + ")";
}

std::vector<std::string> SystemdSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = Sandbox::own_namespaces(network);
    if (method() == SandboxMethod::systemd && features_.private_pids) kinds.emplace_back("pid");
    return kinds;
}

// Only the method systemd makes a user namespace.
bool SystemdSandbox::knows_other_ids(const Account &agent) const
{
    return method() != SandboxMethod::systemd || pi_agent::knows_other_ids(features_, agent.uid, agent.gid);
}

} // namespace pi_agent
