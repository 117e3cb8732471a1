// The system call filters that pi-agent-exec installs, beside a unit's own, and the one that root's processes put on themselves; the one
// home of libseccomp (design section 5).
#pragma once

#include <linux/filter.h>
#include <vector>

namespace pi_agent {

// Lets only the calls of call_names.hpp through, no new namespaces, no sockets but local and Internet ones, no other personality and no
// real-time scheduling: what SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and RestrictRealtime=
// (systemd.exec(5)) do for a unit, for a sandbox that no systemd makes. Before AgentCallFilter::install(), which goes further. Throws
// Failure.
void install_call_filter();

// What every agent is refused, whatever else filters its calls. Made ahead, because that takes a millisecond and installing it does not.
class AgentCallFilter {
public:
    // Throws Failure.
    AgentCallFilter();
    // For this process and everything it starts; it gains no privileges any more. Throws Failure: without the filter nothing may run.
    void install() const;

private:
    std::vector<sock_filter> program_; // empty where a test took it out
};

// What a process of root's may still call once its session is prepared (runner/root_confinement.hpp). Made ahead, too.
class RootCallFilter {
public:
    // Throws Failure.
    RootCallFilter();
    // For this process, all its threads, and what it forks. Throws Failure.
    void install() const;

private:
    std::vector<sock_filter> program_;
};

} // namespace pi_agent
