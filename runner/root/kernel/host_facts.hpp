// What the kernel says of this machine, holds a session to and counts for it.
#pragma once

#include "runner/plan/environment.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <sched.h>

namespace pi_agent {

// --- Facts about this machine, and the job of a cluster inside of which the caller works.

// One of this process's ancestors is Slurm's own for a job: root's with all its ids, running a program of that name that only root can
// change. No variable counts, for the caller sets those, and no control group, which not every cluster makes. That process, by a descriptor
// that can be read when it has ended; empty without one, and if an ancestor ends meanwhile.
UniqueFd find_job(const AsRoot &root);

// --- Which account a process has, as the kernel reports it: its ids, its groups and its privileges.
struct ExpectedAccount {
    Uid user;
    Gid group;
    std::vector<gid_t> groups; // at most these, and `group`
    bool no_new_privileges = true;
    bool no_capabilities = true;
};

// The account of the plan's agent.
ExpectedAccount account_of(const SandboxPlan &plan);

// What is wrong with a process whose /proc/PID/status (proc(5)) this is; empty where it is as expected. A line that is missing, occurs
// twice or cannot be read is wrong, too.
std::optional<std::string> account_problem(const std::string &status, const ExpectedAccount &expected);

// --- The processors that a process may use, on kernels for any number of them (sched_setaffinity(2)).

using AskForProcessors = std::function<int(pid_t, std::size_t, cpu_set_t *)>; // as sched_getaffinity(2)

// The sets follow each other in memory: one has room for 1,024 processors, and a kernel for more answers EINVAL to room that is too small
// for all that it could have. Throws SystemFailure.
std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask = sched_getaffinity);

// Whether one of these directories, which only root can change, has this name. The target of a symlink there can belong to a user, so this
// does not look at it.
bool has_name(const std::vector<std::string> &directories, const std::string &name);

// Its name, as the kernel reports it.
std::string host_name();

// --- Whether the host has fd and rg where the agent looks for them.

// Which of "fd" and "rg" are in none of these directories, the host's part of the agent's PATH. The agent also accepts fd under Debian's
// name, fdfind. Programs that the agent put into its own home do not count.
std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories = system_path());

// --- Whether the agent's program can be run past the wrapper (wrapper.hide_direct_binary): an upgrade by npm or apt may have opened it
// again.

// By its mode and the modes of the directories on the way to it, symlinks resolved. False for a file that does not exist.
bool can_be_run_by_all(const std::string &path);

// The notice for the user at a start; none when the program is hidden, or need not be.
std::optional<std::string> open_program_notice(const Policy &policy);

// --- Asks the kernel whether it holds a session to the policy's network. Where systemd cannot attach its packet filter or may not make a
// network namespace, it only logs that and starts the unit without.

// Whether each of these processes is in such a namespace of its own ("net", "pid", …), not in the host's. Empty where all of them have
// ended.
std::optional<bool> have_own_namespace(const std::vector<pid_t> &processes, const std::string &kind);
// Call both when something runs in the session, and before the agent does. They throw Failure(unavailable). `processes`: all of the
// session. Before the agent these are pi-agent-exec and, for a moment, what started it.
void require_own_network(const std::vector<pid_t> &processes, const NetworkPolicy &network);
void require_packet_filters(const AsRoot &root, const ControlGroup &group, const NetworkPolicy &network);
// What the kernel has for that, asked before there is a session: without it these two would refuse every start. `has_unit`: of the method,
// where systemd holds sessions to the network.
void require_enforceable(const AsRoot &root, const NetworkPolicy &network, bool has_unit);

// --- Asks the kernel whether it holds a session's unit to the policy's limits. Where systemd may not use a controller, it starts the unit
// without.

// Call it when something runs in the group, and before the agent does. Throws Failure(unavailable) unless each limit of the policy is in
// force in the group; `cause` asks what may have kept the controller from it.
void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause);

// --- Whether this host's control groups have what the policy's limits need, asked before anything is made for a session.

struct HostControllers {
    bool is_unified;             // control groups of version 2
    std::set<std::string> names; // "memory", "pids", "cpu": those that systemd can use
};

// From the file systems at /sys/fs/cgroup; every process gets the same answer.
HostControllers host_controllers();

// A limit that the kernel cannot hold a session to.
struct IdleLimit {
    std::string key;               // "limits.memory"
    std::optional<SaidLimit> said; // by the policy: then no session starts; otherwise it is a default
    std::string reason;            // with the remedy
};

// "limits.memory: 8G (FILE:LINE:COLUMN)", or the default that it is.
std::string to_string(const IdleLimit &limit);

// Pure; the limits of time and of sessions need no controller.
std::vector<IdleLimit> idle_limits(const LimitsPolicy &limits, const HostControllers &host);

// The first limit of the policy that needs a control group; none when the policy sets no such limit.
std::optional<IdleLimit> first_for_group(const LimitsPolicy &limits);

// Why the policy's share is one in which no agent starts on this host; empty when it is large enough. `host_memory` in bytes.
std::string problem_of_share(const LimitsPolicy &limits, std::uint64_t host_memory);
std::uint64_t host_memory();

// Throws Failure: unavailable where a limit of the policy would have no effect, configuration where its share is too small here.
void require_limit_controllers(const AsRoot &root, const LimitsPolicy &limits);

// --- Which limits a session reached, from its control group while that exists.

// best_effort: a count that cannot be read counts as 0.
LimitEvents read_limit_events(const ControlGroup &group);

// --- What a session's unit has used, from the kernel.

// Values that are not known there (a group that is gone, control groups of version 1, a kernel before 5.19 for the memory) are left out.
UnitUsage usage_of(const ControlGroup &group);

} // namespace pi_agent
