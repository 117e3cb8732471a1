// The system call filters that pi-agent-exec installs, beside a unit's own, and the one that root's processes put on themselves. They were
// made when the product was built (runner/filter/make_call_filters.cpp), of the rules in runner/filter/call_names.hpp and
// runner/filter/call_rules.hpp.
#pragma once

#include "common/base/fd.hpp"
#include "runner/filter/call_rules.hpp"

namespace pi_agent {

// Lets only the calls of call_names.hpp through, no new namespaces, no sockets but local, Internet and netlink ones, no other personality
// and no real-time scheduling: what an allow-list in SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and
// RestrictRealtime= (systemd.exec(5)) do for a unit. Before install_agent_call_filter(), which goes further. Throws Failure.
void install_call_filter();

// What every agent is refused, whatever else filters its calls. For this process and everything it starts; it gains no privileges any more.
// Throws Failure: without the filter nothing may run.
// With `asked`, returns the descriptor at which set_gid_calls(), unknown_group_calls() and plain_list_calls() wait for an answer
// (seccomp_unotify(2)); once it is closed they end with ENOSYS. None, and they are refused, where the kernel is too old, or where somebody
// outside has such a descriptor already: one process has one of them.
UniqueFd install_agent_call_filter(SetGidCalls set_gid = SetGidCalls::refused);

// Lets only mode_calls through. For this process. Throws Failure.
void install_mode_call_filter();

// Beside these, where nothing but the agent's account would keep a debugger inside in its session: refuses what debuggers do (trace_calls
// of call_names.hpp). Throws Failure.
void refuse_tracing();

// What a process of root's may still call once its session is prepared (runner/root/confined/root_confinement.hpp). For this process, all
// its threads, and what it forks. Throws Failure.
void install_root_call_filter();

} // namespace pi_agent
