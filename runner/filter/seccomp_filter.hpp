// The system call filters that the build made (runner/filter/make_call_filters.cpp) from the rules in runner/filter/calls.toml: the one
// that root's processes put on themselves, and others. The agent's are in runner/inside/agent_process.hpp.
#pragma once

#include "common/base/channel.hpp"

#include <linux/filter.h>

#include <span>
namespace pi_agent {

inline constexpr std::size_t plain_list_size = 28; // of an access control list that says no more than a mode does
inline constexpr unsigned unknown_group = 65534;   // /proc/sys/kernel/overflowgid

// What a process of root's may still call once its session is prepared (runner/root/confined/root_confinement.cpp). For this process, all
// its threads, and what it forks. Throws Failure.
void install_root_call_filter();

// Lets only the calls of `mode` through. For this process. Throws Failure.
void install_mode_call_filter();

// Lets only the calls of `gate` through, and only sockets that the gate and the resolver need. For all threads of this process. Throws
// Failure.
void install_gate_call_filter();

// For this process, by seccomp(2). Throws Failure.
void load_call_filter(std::span<const sock_filter> filter, const char *what, unsigned flags = 0);
sock_fprog program_of(std::span<const sock_filter> filter) noexcept;
// What a process without rights needs before that. Throws Failure.
void give_up_new_privileges();

} // namespace pi_agent
