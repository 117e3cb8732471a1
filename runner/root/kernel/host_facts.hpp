// What the kernel says of this machine, its control groups, and what it holds a session to and counts for it.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"

#include <sched.h>

#include <istream>

namespace pi_agent {

// --- The group of a session's unit, seen from another unit of the session (they are siblings), and the processes in it.

struct ControlGroup {
    std::string path; // below /sys/fs/cgroup
    bool is_unified;  // version 2
};

// The group of the unit `sibling`, from the /proc/self/cgroup of a process in `own_unit`; empty when that process is in another unit. On
// hosts with both versions the one that systemd names (`cgroups(7)`).
std::optional<ControlGroup> find_sibling_group(std::istream &groups, const std::string &own_unit, const std::string &sibling);

// Where systemd keeps units, in each hierarchy that it names by a line of /proc/1/cgroup: the group that its own init.scope is in.
using SystemdTops = std::map<std::string, std::string>;
SystemdTops read_systemd_tops(std::istream &groups_of_init);
// The same, of this host.
SystemdTops read_systemd_tops();

// The group of the unit that systemd has at `place`, whether it exists or not; on hosts with both versions the one that systemd names.
std::optional<ControlGroup> group_of_unit(const SystemdTops &tops, const std::string &place);

// Whether a process of these groups (/proc/PID/cgroup) is in the unit that systemd has at `place`, e.g. "/a.slice/b.scope". The whole place
// counts: users name groups as they like where one is delegated to them, and may move a process of root's into it (`cgroups(7)`).
bool is_in_unit(std::istream &groups, const SystemdTops &tops, const std::string &place);

// Waits until this process is in the control group of such a unit. The kernel tells so, not a signal of systemd's, which anybody on the bus
// can imitate.
void wait_until_inside(const std::string &place, Deadline deadline);

// The group of one of a session's units, for its runner.
ControlGroup group_beside_runner(const std::string &session_id, const std::string &unit);

// Where a controller has its files for the group: version 2 has one place for all, version 1 the same path in each hierarchy.
std::string directory_of(const ControlGroup &group, const std::string &controller);

// The group's path from the top of its hierarchy, the same in all of version 1.
std::string place_in_hierarchy(const ControlGroup &group);

// Where the hierarchies are mounted, and whether the mount at `path` is a file system of this type (statfs(2) f_type). Throws SystemFailure
// where nobody can tell.
extern const char *const control_groups;
bool is_mounted_as(const std::string &path, unsigned long type);

// Kills what is in it, in one step where the kernel can (5.14), so that no fork escapes. best_effort: the caller counts again who is left.
void kill_group(const ControlGroup &group);

// Returns when the group is empty or gone. Throws Failure(system_failure) at the deadline.
void empty_group(const ControlGroup &group, Deadline deadline);

// Removes what an engine left: empty groups at this path and below it. They are in hierarchies of version 1 that systemd does not look
// after. They are also in systemd's own, where systemd keeps a group as long as one of the engine's is in it. best_effort: an empty group
// that is left does no harm.
void remove_empty_groups(const ControlGroup &group);

// The processes in it now, or in a group below it; one that has just ended may be among them. Empty where the group is gone; throws
// SystemFailure where it cannot tell.
std::vector<pid_t> processes_in(const ControlGroup &group);

// A directory of a hierarchy with the groups below it, each after its parent.
std::vector<std::string> groups_below(const std::string &directory);

// The names of the groups directly in it; empty where it has just gone. Throws SystemFailure.
std::vector<std::string> groups_in(const std::string &directory);

// The words of a file of a group, empty when it does not exist; and the number among them at `index`, empty for "max", for -1 and for a
// word that cannot be read.
std::vector<std::string> words_in(const std::string &path);
std::optional<std::uint64_t> number_in(const std::vector<std::string> &words, std::size_t index = 0);

// --- Groups of a session on a host where systemd does not make them: one for the runner, one for what it confines (`cgroups(7)`).

class OwnGroup {
public:
    // Moves this process into a group of the session's own below /sys/fs/cgroup/pi-agent. Where root cannot write the hierarchy of version
    // 2 (a container, or a host with version 1) this process stays where it is. Throws Failure(unavailable) when `user` owns the group in
    // which it then stays, or one above it, and so could freeze or kill it.
    OwnGroup(const AsRoot &root, std::string session_id, Uid user);
    OwnGroup(const OwnGroup &) = delete;
    OwnGroup &operator=(const OwnGroup &) = delete;
    // Leaves and removes the groups. best_effort: what is left is empty, and the next session's start removes it.
    ~OwnGroup();

    // A descriptor of the agent's group, for enter_group in a forked child; none where there are no groups.
    [[nodiscard]] FdRef agents() const noexcept { return agents_; }
    // The agent's group; none where there are no groups.
    [[nodiscard]] std::optional<ControlGroup> group() const;

private:
    std::string id_;
    UniqueFd agents_; // none where there are no groups
};

// Where such groups are. Makes it; false where the hierarchy of version 2 cannot be written.
constexpr const char *own_groups = "/sys/fs/cgroup/pi-agent";
bool make_own_groups();

// The group of what a session confines; none where there are no groups. Also none when it is gone: then the kernel has ended its processes.
std::optional<ControlGroup> find_own_group(const std::string &session_id);

// Moves the calling process into it. async-signal-safe; returns errno, or 0.
int enter_group(FdRef group) noexcept;

// Moves the calling process into a group beside the sessions' groups, and removes the groups of `session_id` if they are empty then. The
// first function alone is for a process that outlives the session. Both best_effort: without groups there is nothing to leave.
void step_aside() noexcept;
void leave_group(const std::string &session_id) noexcept;

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
