// The system call filters that pi-agent-exec installs, besides a unit's own, and the filter that root's processes put on themselves. The
// build made them (runner/filter/make_call_filters.cpp), from the rules in runner/filter/calls.toml.
#pragma once

#include "common/base/fd.hpp"

#include <linux/filter.h>

#include <optional>
#include <vector>

namespace pi_agent {

// What happens to a call that gives the set-gid bit to an existing file: only somebody who looks can tell a directory from a program.
enum class SetGidCalls { refused, asked };

inline constexpr std::size_t plain_list_size = 28; // of an access control list that says no more than a mode does
inline constexpr unsigned unknown_group = 65534;   // /proc/sys/kernel/overflowgid

// Lets only the calls of calls.toml through, no new namespaces, only local, Internet and netlink sockets, no other personality and no
// real-time scheduling. For a unit, an allow-list in SystemCallFilter=, RestrictNamespaces=, RestrictAddressFamilies=, LockPersonality= and
// RestrictRealtime= (systemd.exec(5)) do that. Call it before install_agent_call_filter(), which goes further. Throws Failure.
void install_call_filter();

// What every agent is denied, whatever else filters its calls. Holds for this process and everything it starts; it can gain no privileges
// any more. Throws Failure: without the filter nothing may run. With `asked`, returns the descriptor at which the calls of
// set_gid, nobodys_group and plain_list (calls.toml) wait for an answer (seccomp_unotify(2)); once it is closed they end with ENOSYS.
// Returns none, and those of set_gid are refused, where the kernel is too old, or where somebody outside already has such a descriptor: a
// process can have only one.
UniqueFd install_agent_call_filter(SetGidCalls set_gid = SetGidCalls::refused);

// Lets only mode_calls through. For this process. Throws Failure.
void install_mode_call_filter();

// Lets only gate_calls through, and only sockets that the gate and the resolver need. For all threads of this process. Throws Failure.
void install_gate_call_filter();

// Besides these, where only the agent's account would keep a debugger inside its session: refuses what debuggers do (trace of
// calls.toml). Throws Failure.
void refuse_tracing();

// What this policy refuses besides, and what it does not let through: for a process that becomes the
// agent next. Nothing for an empty program. False, with errno, where the kernel does not take it.
bool install_session_call_filter(const std::vector<sock_filter> &program) noexcept;

// Besides these, where a quota counts the agent's files: refuses what would take them out of their project (attribute of calls.toml).
// Throws Failure.
void refuse_attributes();

// What a process of root's may still call once its session is prepared (runner/root/confined/root_confinement.cpp). For this process, all
// its threads, and what it forks. Throws Failure.
void install_root_call_filter();

// --- The filter of one session: what the policy refuses of system calls and sockets, and what it does not let through. Made at each start,
// for the filters of the build are the same for all policies.

// What a session's own filter refuses.
struct SessionCalls {
    std::vector<std::string> refused = {}; // by name: EPERM; what this machine does not have needs no refusal
    bool keeps_personality = false;        // personality(2), except the usual one and the question which it is: EPERM
    std::optional<unsigned> families = {}; // socket(2) of a family that is not in the set (address_families): EAFNOSUPPORT
};

// A program of the kernel's (seccomp(2)); without instructions where nothing is refused. Calls of another architecture end the process.
std::vector<sock_filter> session_call_program(const SessionCalls &calls);

} // namespace pi_agent
