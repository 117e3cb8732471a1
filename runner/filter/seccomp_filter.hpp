// The system call filters that pi-agent-exec installs, beside a unit's own, and the one that root's processes put on themselves. They were
// made when the product was built (runner/filter/make_call_filters.cpp), of the rules in runner/filter/call_names.hpp and
// runner/filter/call_rules.hpp.
#pragma once

namespace pi_agent {

// Lets only the calls of call_names.hpp through, no new namespaces, no sockets but local, Internet and netlink ones, no other personality and no
// real-time scheduling: what an allow-list in SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and
// RestrictRealtime= (systemd.exec(5)) do for a unit. Before install_agent_call_filter(), which goes further. Throws Failure.
void install_call_filter();

// What every agent is refused, whatever else filters its calls. For this process and everything it starts; it gains no privileges any more.
// Throws Failure: without the filter nothing may run.
void install_agent_call_filter();

// What a process of root's may still call once its session is prepared (runner/root/confined/root_confinement.hpp). For this process, all
// its threads, and what it forks. Throws Failure.
void install_root_call_filter();

} // namespace pi_agent
