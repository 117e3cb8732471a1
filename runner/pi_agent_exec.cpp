// pi-agent-exec: the first process of the agent's unit. Receives the launch record, restricts itself for good, runs the agent, reports its
// end.
#include "common/host/identity.hpp"

#include "runner/inside/agent_process.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

constexpr int patience_seconds = 30;

// Every signal waits: systemd sends TERM to the agent, and a helper that died of it would cut off the agent's last output.
void block_signals()
{
    sigset_t all;
    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, nullptr) != 0) throw_errno("blocking signals");
}

// The control socket on standard input.
UniqueFd take_control_socket()
{
    int type = 0;
    if (socklen_t length = sizeof type; getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
        throw Failure(FailureKind::by_hand, "pi-agent's runner starts this program; do not run it by hand");
    UniqueFd control = duplicate(FdRef(STDIN_FILENO));
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!control || !null || dup2(null.get(), STDIN_FILENO) < 0) throw_errno("taking the control socket");
    return control;
}

// Fetches it from a socket of the runner's, whose path is the argument: an engine lets only that through.
UniqueFd knock_for_control_socket(const char *path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    const UniqueFd door = UniqueFd::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (!door || connect(door.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
        throw_errno("reaching pi-agent's runner");
    std::optional<Packet> answer = receive_packet(door, in_seconds(launch_patience_seconds));
    if (!answer || answer->fds.size() != 1) throw Failure(ExitStatus::denied, "the runner let this process in nowhere");
    return std::move(answer->fds.front());
}

// The parent is conmon, which alone can tell podman, and so systemd, of our end; or docker's shim. Whoever kills it ends the session.
void die_with_parent()
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) throw_errno("asking for the parent-death signal");
}

// Whether a number of a process means one of this session (pid_namespaces(7)).
bool has_own_numbers(const LaunchRecord &record)
{
    const auto processes = namespace_of("self", "pid");
    return processes && record.hosts_processes != 0 && processes->inode != record.hosts_processes;
}

// Whether more than the agent's account keeps a debugger inside to the session's own processes. The launcher stays out of its reach: it is
// not dumpable, and in the Landlock domain above the agent's.
bool may_trace(const LaunchRecord &record, bool has_landlock)
{
    return record.tracing != Tracing::automatic ? record.tracing == Tracing::always : has_landlock || has_own_numbers(record);
}

// Where to answer what the filter asks; empty where the filter asks nothing.
UniqueFd restrict(const ReceivedLaunch &launch)
{
    if (launch.record.restrictions == Restrictions::none) return {}; // sandbox.method: none
    const LandlockInForce landlock = restrict_with_landlock(launch.stdio);
    if (launch.record.restrictions == Restrictions::all) install_call_filter();
    if (!may_trace(launch.record, landlock.at_all)) refuse_tracing();
    if (launch.record.keeps_project) refuse_attributes();
    return install_agent_call_filter(launch.mode_changer ? SetGidCalls::asked : SetGidCalls::refused);
}

// What the policy refuses, and what it could let through and does not. Not for this process, which makes calls that an agent may lack.
SessionCalls calls_of(const LaunchRecord &record)
{
    SessionCalls calls;
    if (record.restrictions == Restrictions::none) return calls; // the policy names none (common/policy/policy_levels.cpp)
    if (defence_is_on("policy-calls")) calls.refused = record.denied_calls;
    if (defence_is_on("policy-families") && record.address_families != all_address_families) calls.families = record.address_families;
    const bool has_list = record.restrictions == Restrictions::all && defence_is_on("call-filter"); // otherwise the unit has it
    for (const auto &call : allowable_calls) {
        const bool is_allowed =
            std::find(record.allowed_calls.begin(), record.allowed_calls.end(), call.name) != record.allowed_calls.end();
        if (is_allowed || !(call.refusal == Refusal::always ? defence_is_on("seccomp-filter") : has_list)) continue;
        if (std::string_view(call.name) == "personality")
            calls.keeps_personality = true;
        else
            calls.refused.emplace_back(call.name);
    }
    return calls;
}

ExecEnded run(FdRef control)
{
    send_packet(control, encode(ExecMessage(ExecReady{})), {}, in_seconds(patience_seconds));
    fault_point("launcher-ready");
    ReceivedLaunch launch = receive_launch(control, in_seconds(launch_patience_seconds));
    require_mount_points(launch.record);
    enter_working_directory(launch.record);
    take_terminal(launch);
    UniqueFd questions = restrict(launch);
    // --- restricted from here: this process and the agent alike ---
    fault_point("restricted");
    const pid_t agent = start_agent(launch, session_call_program(calls_of(launch.record)));
    fault_point("agent-started");
    for (auto &fd : launch.stdio)
        fd.reset(); // the agent's end of a pipe must be the last one
    launch.terminal.reset();
    if (questions) // after the fork: a thread is not copied
        answer_agent_calls(std::move(questions), std::move(launch.mode_changer), has_own_numbers(launch.record));
    if (launch.connections) serve_ports(std::move(launch.connections), std::move(launch.record.ports));
    return wait_for_agent(agent, control);
}

// When this process ends, the unit ends, and with it the kernel's counts of its limits: the runner reads them first.
void wait_for_answer(FdRef control)
{
    try {
        receive_packet(control, in_seconds(1));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: without it a notice may be missing
    }
}

} // namespace

int main(int count, char **arguments)
{
    // Same uid as the agent: not dumpable, so that it cannot be traced or read through /proc.
    if (defence_is_on("exec-not-dumpable") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return static_cast<int>(ExitStatus::system_failure);
    UniqueFd control;
    try {
        const bool has_engine = count > 1;
        if (has_engine && defence_is_on("die-with-engine")) die_with_parent();
        control = has_engine ? knock_for_control_socket(arguments[1]) : take_control_socket();
        block_signals();
        const ExecEnded ended = run(control);
        fault_point("agent-over");
        send_packet(control, encode(ExecMessage(ended)), {}, in_seconds(1));
        wait_for_answer(control);
        end_like(ended);
    } catch (const std::exception &failure) {
        const auto *known = dynamic_cast<const Failure *>(&failure);
        const ExitStatus status = known == nullptr ? ExitStatus::internal : known->status();
        if (!control) {
            std::fprintf(stderr, "pi-agent-exec: %s\n", failure.what());
            return static_cast<int>(status);
        }
        try {
            send_packet(control, encode(ExecMessage(ExecFailed{failure.what()})), {}, in_seconds(1));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the runner is gone; systemd still has the status
        }
        return static_cast<int>(status);
    }
}
