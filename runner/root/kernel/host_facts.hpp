// Facts about this machine, and the job of a cluster inside of which the caller works.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/sandbox_plan.hpp"

#include <sched.h>

namespace pi_agent {

// One of this process's ancestors is Slurm's own for a job: root's with all its ids, running a program of that name that only root can
// change. No variable counts, for the caller sets those, and no control group, which not every cluster makes. That process, by a descriptor
// that can be read when it has ended; empty without one, and if an ancestor ends meanwhile.
UniqueFd find_job(const AsRoot &root);

// Facts about this machine: which account a process has, processors, and which programs exist.

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

} // namespace pi_agent
