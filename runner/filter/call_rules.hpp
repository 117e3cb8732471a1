// Which system calls a session may make, by number and by argument, as data. pi-agent-exec installs it (runner/filter/seccomp_filter.cpp),
// and pi-agentctl render writes it down for container engines (admin/render/render.cpp). Also which calls root makes besides.
#pragma once

#include "runner/filter/seccomp_filter.hpp"

#include <cstddef>

namespace pi_agent {

inline constexpr std::uint64_t whole_argument = ~std::uint64_t{0};
inline constexpr std::uint64_t low_half = 0xffffffff; // of an argument: all that the kernel looks at where it takes an int

inline constexpr std::size_t plain_list_size = 28; // of a list that says no more than a mode does
inline constexpr unsigned unknown_group = 65534;   // /proc/sys/kernel/overflowgid

// Holds where the bits of `mask` in argument `index` are `value`, or, with `equal` false, where they are anything else; the latter only
// with `whole_argument`.
struct ArgumentTest {
    unsigned index = 0;
    std::uint64_t mask = 0;
    std::uint64_t value = 0;
    bool equal = true;
};

// The call ends with `error` where all of `tests` hold.
struct CallDenial {
    const char *name = nullptr;
    std::vector<ArgumentTest> tests;
    int error = 0;
};

// A call that is in no list of calls: it passes where `test` holds.
struct CallAllowance {
    const char *name = nullptr;
    ArgumentTest test;
};

// Calls whose arguments are in memory, where a filter cannot look: they end with ENOSYS, and libraries fall back to calls that it can
// judge.
const std::vector<CallDenial> &unknown_calls();
// The calls that give that bit: refused, or asked about.
std::vector<CallDenial> set_gid_calls();
// Calls that give a file to the group that stands for every group without a number in the session. The kernel refuses them, even where it
// is the file's own group, and programs that copy a tree then take set-gid bits off.
std::vector<CallDenial> unknown_group_calls();
// Calls that may write down the nine bits of a mode as an access control list (acl(5)). With one the kernel takes the set-gid bit off a
// directory whose group is not the caller's.
std::vector<CallDenial> plain_list_calls();
// What every session is denied, whatever else filters its calls; with unknown_calls(). With `asked`, without set_gid_calls().
std::vector<CallDenial> call_denials(SetGidCalls set_gid = SetGidCalls::refused);
// What makes a snapshot of a subvolume of the user's: it has what is masked in the project, because masks are mounts. Not for container
// engines, where nothing is masked.
std::vector<CallDenial> snapshot_denials();
// What debuggers do (trace_calls): denied where nothing keeps a debugger in its session.
std::vector<CallDenial> trace_denials();
// What changes attributes of files, their project among them: denied where a quota of the agent's files counts. In a user namespace the
// kernel refuses another project as well, but not every method has one.
std::vector<CallDenial> attribute_denials();
// Limits and scheduling of other processes of the same uid.
std::vector<CallDenial> tuning_denials();

// Besides allowed_calls and trace_calls (runner/filter/call_names.hpp), where nobody else has a list.
std::vector<CallAllowance> call_allowances();
// Besides root_calls and the part of allowed_calls that root keeps.
std::vector<CallAllowance> root_call_allowances();
// Besides gate_calls.
std::vector<CallAllowance> gate_call_allowances();

} // namespace pi_agent
