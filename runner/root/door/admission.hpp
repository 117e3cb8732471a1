// What a caller chose for a program run by sudo, who called, who gets in, and where: each function refuses with the Failure that the user
// will see.
#pragma once

#include "runner/root/errand/errand.hpp"

namespace pi_agent {

// --- Takes back what a caller can choose for a program run by sudo: environment, limits, signals, scheduling, session (design rule 8).

// A caller's slack of years would keep every time-out of this process from firing (PR_SET_TIMERSLACK(2const) survives fork, exec and sudo).
void reset_timer_slack();

// Copies the one variable that is used, SUDO_UID, and empties the environment, so that no library reads the rest.
std::optional<std::string> take_sudo_uid();

// Moves standard input, the wrapper's socket, to a descriptor of its own. The three standard descriptors become /dev/null, and every other
// descriptor is closed.
UniqueFd take_channel(const AsRoot &root);

// Throws Failure(denied) unless this process is in every namespace of PID 1: in others, paths, ids, addresses and names mean something
// else, and somebody else decided who may reach what there.
void require_host_namespaces(const AsRoot &root);

// Sets resource limits, scheduling, signals, timers, umask, session and process attributes to PID 1's or to a fixed value. Throws when one
// cannot be set.
void reset_process_state(const AsRoot &root);

// --- Who is calling: the two witnesses that a caller cannot forge together (design rule 6).

// A decimal uid without sign, space, leading zero or overflow; empty otherwise (CVE-2019-14287: -1 and 4294967295 meant root).
std::optional<Uid> parse_uid(const std::string &text) noexcept;

// The caller: SUDO_UID, accepted only if it equals the uid that made `channel` (SO_PEERCRED), is neither 0 nor -1, and is in the user
// database. Throws Failure(denied) otherwise. SO_PEERCRED names the socket's creator and outlives it, so its pid is never used.
Account authenticate(const AsRoot &root, FdRef channel, const std::optional<std::string> &sudo_uid);

// --- The account that a session's agent runs as, and what makes it unfit.

// Never root, the caller or another user, and not in the caller's primary group. Compares numbers and not only names: two names may share a
// number. Throws Failure(configuration), or Failure(denied) when the caller is an agent under another name.
Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller);

// The account with its primary group alone.
Account without_other_groups(Account agent);

// Requires that the agent is in no group that opens the host or that the policy authorises. Asks the user database for dozens of names, and
// each may be asked of a service: so call it while systemd builds the unit, before the agent starts. Throws Failure(configuration).
void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent);

// --- Who gets in, and where.

// The installed policy; refuses while wrapper.enable is false.
Policy load_enabled_policy(const Account &caller);

// Refuses while this host is drained. `program` is not known before the request: then what the caller may still ask for is let through.
// Call it again once others can see the session, because the caller decides how long a start takes.
void require_not_drained(const AsRoot &root, const Account &caller, std::optional<Program> program);

// Under a policy that places sessions in jobs of the cluster: refuses a start that comes from elsewhere. Slurm's process for the job, whose
// end ends the session (runner/root/kernel/host_facts.hpp); empty for a session that needs no job.
UniqueFd require_in_job(const AsRoot &root, const Account &caller, const Policy &policy, Program program);

// The conditions under which a start began: the policy, and what `pi-agentctl apply` and `remove` have done to this host.
struct StartStamp {
    std::string policy, host;
};
StartStamp stamp_start(const Account &caller);

// Call it once others can see the session. A session that a changed policy no longer allows is then either refused here, or ended by
// `apply`. After `remove` nobody starts as an account that may be somebody else's by now.
void require_same_conditions(const StartStamp &stamp, const Account &caller, const Account &agent);

AccessRules authorise(const Policy &policy, const Account &caller);

// What root's own files say about a session of the caller's, before root looks at anything of the caller's.
struct Admission {
    AccessRules rules;
    Account agent;
    HostView view;
};

// Decides again; only this decision counts. Makes `policy` the one that holds for this caller (common/decide/decision.hpp).
Admission admit(Policy &policy, const Account &caller);

// `callers` is the policy that admit made.
OpenedProject open_allowed_project(Child &child, const Account &caller, const Admission &admission, Policy callers,
                                   const AskedOfStart &asked);

// No user has more sessions than the policy allows; the caller's new session already counts.
void require_room(const AsRoot &root, const Account &caller, const LimitsPolicy &limits);

// Under settings_lock and mcp_lock, the keys that lock `file`. In a session without the lock nothing is mounted over it: there the agent
// could move or remove the directory that holds it, and with it the lock of every other session.
void require_locked_sessions(const AsRoot &root, const Account &caller, const std::string &id, const char *file, const char *key);

// --- Bounds how many starts of one user are under way at once. A start costs a runner and one of root's few hundred connections to the
// system bus, and its user decides how long it waits for a request.

// Held as long as the descriptor is open, and leaves no trace. Never waits: the caller may freeze this process, and with it a lock. Throws
// Failure(limit) when all of this user's slots are taken.
UniqueFd take_start_slot(const AsRoot &root, Uid user);

// Tries for three seconds, in which it holds nothing that others wait for: a user who starts twenty at once gets twenty. Calls `waiting`
// before each try. Throws as above.
UniqueFd wait_for_start_slot(const AsRoot &root, Uid user, const std::function<void()> &waiting);

// The same for questions about a user's own sessions (runner/root/own/questions.hpp), of which fewer are answered at once.
UniqueFd take_question_slot(const AsRoot &root, Uid user);

} // namespace pi_agent
