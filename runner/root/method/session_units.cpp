// The units of a session: its own, the runner's scope, and its gate.
#include "runner/root/method/sandbox.hpp"

#include "runner/root/session/session_directory.hpp"

#include <fstream>
#include <sys/socket.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr int scope_patience_seconds = 30;
constexpr int unanswered_patience_seconds = 1;
constexpr std::size_t scopes_at_once = 64;

// For use while another failure is under way: the user hears of that one.
void wait_quietly(const std::string &place, int seconds) noexcept
{
    try {
        wait_until_inside(place, in_seconds(seconds));
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the earlier failure is reported
    }
}

// --- The gate.

constexpr int gate_patience_seconds = 10; // it has been starting since before the session's own unit
constexpr int gate_end_seconds = 4;

void require_ready(FdRef said, Deadline deadline)
{
    const std::optional<std::string> packet = read_packet(said, deadline);
    if (!packet) throw Failure(ExitStatus::unavailable, "it ended");
    if (!std::holds_alternative<GateReady>(decode_gate_message(*packet))) throw ProtocolError("it says something else first");
}

std::vector<UnitProperty> properties_of(Sandbox &sandbox, const GateRoot &root)
{
    return gate_properties(sandbox.id(), sandbox.user(), sandbox.systemd().features(), root);
}

// Why systemd does not start such a gate, where one that was asked for has ended without a word; empty where it does. Throws.
std::string refusal_of_gate(Sandbox &sandbox, const GateRoot &root)
{
    const std::string gate = gate_name(sandbox.id());
    if (sandbox.systemd().unit_exists(gate)) return "";
    try {
        sandbox.systemd().start_program(gate, properties_of(sandbox, root), {FdRef(-1), FdRef(-1), FdRef(-1)});
    } catch (const Failure &failure) {
        return failure.what();
    }
    return ""; // it was started before, and has ended; this one ends, because it has no channel
}

} // namespace

void move_into_scope(SystemdBus &systemd, const std::string &session_id, Uid user, const std::function<void()> &meanwhile)
{
    const bool moves = defence_is_on("own-scope");
    const std::string scope = scope_name(session_id);
    const std::string place = place_in_slice(user, scope);
    int patience_seconds = unanswered_patience_seconds; // the answer may be what fails, while systemd is at work
    try {
        if (moves) systemd.request_scope(scope, scope_properties(user));
        patience_seconds = scope_patience_seconds;
        meanwhile();
    } catch (...) {
        if (moves) wait_quietly(place, patience_seconds);
        throw;
    }
    if (moves) wait_until_inside(place, in_seconds(scope_patience_seconds));
    fault_point("in-its-scope");
    const auto sweep = [&] {
        for (const auto &empty : find_empty_scopes(systemd))
            systemd.stop_unit(empty);
    };
    attempt_recorded(session_id, sweep, "empty scopes cannot be removed: "); // one user's leftover must not be another's refusal
}

std::vector<std::string> find_empty_scopes(SystemdBus &systemd)
{
    std::vector<std::string> found;
    const auto slices = group_of_unit(read_systemd_tops(), slices_place);
    if (!slices || !defence_is_on("own-scope") || !defence_is_on("sweep-scopes")) return found;
    for (const auto &slice : groups_in(slices->path)) {
        if (!slice.starts_with(user_slice_prefix)) continue;
        const std::string path = slices->path + "/" + slice + "/";
        for (const auto &scope : groups_in(path)) {
            if (!session_of_scope(scope)) continue;
            const auto is_empty = [&] { return processes_in({path + scope, slices->is_unified}).empty(); };
            // systemd makes a group and moves a process into it in one step: once it has answered, no process is on its way.
            if (is_empty() && systemd.unit_exists(scope) && is_empty()) found.push_back(scope);
            if (found.size() == scopes_at_once) return found;
        }
    }
    return found;
}

SessionUsage usage_of_session(const std::string &session_id, pid_t runner)
{
    // The runner's number may belong to another process by now, but that one is not in the session's scope.
    std::ifstream groups("/proc/" + std::to_string(runner) + "/cgroup");
    auto group = find_sibling_group(groups, scope_name(session_id), service_name(session_id));
    if (!group) group = find_own_group(session_id);
    if (!group || !path_exists(group->path)) return {};
    SessionUsage usage;
    usage.processes = processes_in(*group).size();
    usage.memory = number_in(words_in(directory_of(*group, "memory") + (group->is_unified ? "/memory.current" : "/memory.usage_in_bytes")));
    usage.cpu_usec = usage_of(*group).cpu_usec;
    return usage;
}

// --- The session's own unit.

SystemdSandbox::SystemdSandbox(const AsRoot &root, SandboxMethod method, std::string session_id, Uid user)
    : Sandbox(root, method, std::move(session_id), user), service_(service_name(id()))
{
}

void SystemdSandbox::leave_callers_group(const std::function<void()> &meanwhile)
{
    move_into_scope(systemd(), id(), user(), [&] {
        meanwhile();
        systemd().watch_service(service_);
        const SystemdFeatures &features = systemd().features();
        if (method() != SandboxMethod::systemd) return;
        if (features.private_pids) facts_.namespaces.emplace_back("pid");
        facts_.known_ids = features.identity_ids ? identity_ids : 0; // only this method makes a user namespace
    });
}

void SystemdSandbox::start_unit(const SandboxPlan &plan, const ServiceStreams &streams)
{
    systemd().start_service(service_, session_properties(method(), plan, systemd().features()),
                            CompanionUnit{cleanup_name(id()), cleanup_properties(id(), user())}, streams);
    was_taken_in_ = true;
    fault_point("unit-asked-for");
}

// By way of the unit that it needs, because it refuses to be stopped by itself (runner/plan/unit_properties.cpp).
void SystemdSandbox::stop()
{
    systemd().stop_unit(cleanup_name(id()));
}

bool SystemdSandbox::is_there()
{
    try {
        return systemd().unit_exists(service_);
    } catch (const Failure &) { // the bus is gone
        // With this process's scope the unit ends in any case. A unit that systemd has accepted brings its own cleanup unit, which also
        // knows what an engine left elsewhere. For any other one the kernel knows its processes, and an engine itself counts.
        return was_taken_in_ || !Sandbox::processes().empty();
    }
}

// Listeners need a socket, and whoever has its other end can send descriptors back. They would wait at root's end, unread, to be closed in
// root's name. So that end takes in nothing.
SessionGate::SessionGate(Sandbox &sandbox, GateRoot root) : sandbox_(sandbox), root_(std::move(root))
{
    auto [ours, theirs] = make_channel();
    if (defence_is_on("gate-one-way") && shutdown(ours.get(), SHUT_RD) != 0) throw_errno("making the gate's channel one of one way");
    Pipe said = make_packet_pipe();
    sandbox.systemd().start_program(gate_name(sandbox.id()), properties_of(sandbox, root_), {theirs, said.writing, FdRef(-1)}, false);
    fault_point("gate-asked-for");
    channel_ = std::move(ours);
    said_ = std::move(said.reading);
}

SessionGate::~SessionGate() // NOLINT(bugprone-exception-escape): attempt_recorded catches it
{
    if (is_open_) return;
    channel_.reset();
    said_.reset();
    attempt_recorded(sandbox_.id(), [&] { end(); });
}

// A process that systemd has just made for the gate may not be in the gate's group yet: it ends because its channel has.
void SessionGate::end()
{
    const std::string gate = gate_name(sandbox_.id());
    for (const Deadline deadline = in_seconds(gate_end_seconds); sandbox_.systemd().unit_exists(gate);
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        kill();
        if (Clock::now() >= deadline) throw Failure(ExitStatus::system_failure, gate + " does not end");
    }
}

void SessionGate::kill()
{
    kill_group(group_beside_runner(sandbox_.id(), gate_name(sandbox_.id())));
}

void SessionGate::open(const AsRoot &root, GateOrder &order, const std::vector<std::uint16_t> &host_ports)
{
    GateSockets sockets = open_gate_sockets(root, sandbox_.namespace_of_launcher("net"), host_ports);
    order.listeners = sockets.listeners.size();
    const Deadline deadline = in_seconds(gate_patience_seconds);
    try {
        send_gate_order(channel_, order, deadline);
        for (const auto &listener : sockets.listeners)
            send_gate_listener(channel_, listener.about, listener.socket, deadline);
        require_ready(said_, deadline);
    } catch (const Failure &failure) {
        const std::string refusal = refusal_of_gate(sandbox_, root_);
        throw Failure(ExitStatus::unavailable, "the session's gate does not serve: " + (refusal.empty() ? failure.what() : refusal) +
                                                   "; the administrator finds more with: journalctl -u " + gate_name(sandbox_.id()));
    }
    lookup_ = std::move(sockets.lookup);
    is_open_ = true;
    fault_point("gate-open");
}

} // namespace pi_agent
