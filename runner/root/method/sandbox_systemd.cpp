// The unit of a session behind the interface that all methods share.
#include "runner/root/method/sandbox_systemd.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/kernel/control_group.hpp"
#include "runner/root/kernel/limit_controllers.hpp"
#include "runner/root/kernel/network_check.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

SystemdSandbox::SystemdSandbox(const AsRoot &root, std::string session_id, Uid user)
    : root_(root), id_(std::move(session_id)), user_(user), bus_(root)
{
}

void SystemdSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    MoveIntoScope move(bus_, scope_name(id_), user_); // what fails meanwhile waits for it
    meanwhile();
    bus_.watch_service(service_name(id_));
    features_ = systemd_features(bus_.version());
    move.wait();
    fault_point("in-its-scope");
    sweep_empty_scopes(bus_, id_);
}

void SystemdSandbox::start(const SandboxPlan &plan, FdRef launcher)
{
    start_unit(plan, {launcher, FdRef(-1), FdRef(-1)});
}

void SystemdSandbox::start_unit(const SandboxPlan &plan, const ServiceStreams &streams)
{
    bus_.start_service(service_name(id_), properties(plan, features_), CompanionUnit{cleanup_name(id_), cleanup_properties(id_, user_)},
                       streams);
    was_taken_in_ = true;
    fault_point("unit-asked-for");
}

void SystemdSandbox::stop()
{
    bus_.stop_unit(service_name(id_));
}

void SystemdSandbox::kill()
{
    kill_group(group_of_service(id_));
}

SandboxResult SystemdSandbox::result()
{
    return bus_.service_result();
}

FdRef SystemdSandbox::fd() const
{
    return bus_.fd();
}

Deadline SystemdSandbox::next_look(Deadline otherwise) const
{
    return bus_.next_look(otherwise);
}

void SystemdSandbox::process()
{
    bus_.process();
}

// The kernel's word while there is a group: systemd's takes long where it matters (service_watch.hpp).
UnitUsage SystemdSandbox::usage()
{
    return if_it_can_be_read([&] {
        const UnitUsage usage = usage_of(group_of_service(id_));
        return usage.cpu_usec ? usage : bus_.service_usage();
    });
}

// Of the launcher, which is alone in the unit then, but for what started it and goes.
UniqueFd SystemdSandbox::mount_namespace()
{
    struct stat own {};
    if (stat("/proc/self/ns/mnt", &own) != 0) throw_errno("reading the own mount namespace");
    UniqueFd found;
    for (const pid_t pid : processes()) {
        UniqueFd one = UniqueFd::adopt(open(("/proc/" + std::to_string(pid) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
        struct stat facts {};
        if (!one || fstat(one.get(), &facts) != 0 || facts.st_ino == own.st_ino) continue;
        if (found) throw Failure(ExitStatus::internal, "the session has more processes than its launcher before its agent starts");
        const std::vector<pid_t> still = processes(); // and nobody else has its number by now
        if (std::find(still.begin(), still.end(), pid) != still.end()) found = std::move(one);
    }
    if (!found) throw Failure(ExitStatus::unavailable, "systemd made no mount namespace for the session");
    return found;
}

std::vector<pid_t> SystemdSandbox::processes()
{
    return processes_in(group_of_service(id_));
}

void SystemdSandbox::require_network_enforced(const NetworkPolicy &network)
{
    if (network.mode == NetworkMode::none)
        require_own_network(processes(), network);
    else if (network.mode != NetworkMode::full)
        require_packet_filters(root_, group_of_service(id_), network);
}

void SystemdSandbox::require_limits_enforced(const LimitsPolicy &limits)
{
    if (first_for_group(limits) && defence_is_on("limits-check"))
        require_limits_in(group_of_service(id_), limits, "is it kept from its slice (DisableControllers=)?");
}

LimitEvents SystemdSandbox::limit_events()
{
    return if_it_can_be_read([&] { return read_limit_events(group_of_service(id_)); });
}

std::vector<UnitProperty> SystemdSandbox::properties(const SandboxPlan &plan, const SystemdFeatures &features) const
{
    return service_properties(plan, features);
}

bool SystemdSandbox::is_there()
{
    try {
        return bus_.unit_exists(service_name(id_));
    } catch (const Failure &) { // the bus is gone
        // With this process's scope the unit ends in any case. One that systemd has taken in brings its own cleanup unit, which also knows
        // what an engine left elsewhere; of another one the kernel knows who is in it, an engine itself counted.
        return was_taken_in_ || !SystemdSandbox::processes().empty();
    }
}

bool SystemdSandbox::may_live(const std::string &session_id)
{
    return bus_.unit_exists(service_name(session_id)) || bus_.unit_exists(scope_name(session_id)) ||
           bus_.unit_exists(cleanup_name(session_id));
}

std::string SystemdSandbox::name() const
{
    return "the session's unit " + service_name(id_);
}

std::string SystemdSandbox::explain(const SandboxResult &result)
{
    return "systemd could not prepare the sandbox (" + result.result + ", status " + std::to_string(result.status) + ")";
}

std::string SystemdSandbox::where_to_look() const
{
    return "; see: journalctl -u " + service_name(id_);
}

std::vector<std::string> SystemdSandbox::own_namespaces(const NetworkPolicy &network) const
{
    std::vector<std::string> kinds = {"mnt", "ipc", "uts", "user"};
    if (features_.private_pids) kinds.emplace_back("pid");
    if (network.mode == NetworkMode::none) kinds.emplace_back("net");
    return kinds;
}

bool SystemdSandbox::knows_other_ids(const Account &agent) const
{
    const auto kinds = own_namespaces({});
    const bool has_user_namespace = std::find(kinds.begin(), kinds.end(), "user") != kinds.end();
    return !has_user_namespace || pi_agent::knows_other_ids(features_, agent.uid, agent.gid);
}

} // namespace pi_agent
