// Which system calls sessions, their gates and root make, by number and by argument, as data (calls.toml). The build makes filters of them
// (runner/filter/make_call_filters.cpp), and pi-agentctl render writes them down for container engines (admin/render/render.cpp).
#pragma once

#include "runner/filter/seccomp_filter.hpp"

#include <algorithm>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace pi_agent {

inline constexpr const char *allowed_calls[] = {
#include "runner/filter/allowed_calls.inc"
};
inline constexpr const char *trace_calls[] = {
#include "runner/filter/trace_calls.inc"
};

inline constexpr std::uint64_t whole_argument = ~std::uint64_t{0};
inline constexpr std::uint64_t low_half = 0xffffffff; // of an argument: all that the kernel looks at where it takes an int
inline constexpr std::uint64_t all_namespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
static_assert(AF_UNIX == 1); // the rows of socketpair(2) name the other bits

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

// always: what every session is denied, whatever else filters its calls; with unknown. Those of set_gid and tuning are refused, or asked
// about with those of nobodys_group and plain_list (runner/filter/seccomp_filter.hpp).
enum class DenialPart { always, unknown, set_gid, nobodys_group, plain_list, snapshot, attribute, tuning };

inline std::vector<CallDenial> denials_of(std::initializer_list<DenialPart> parts)
{
    struct DenialRow {
        DenialPart part{};
        std::vector<const char *> calls = {};
        std::vector<ArgumentTest> tests = {};
        int error = EPERM;
    };
    static const std::vector<DenialRow> rows = {
#include "runner/filter/denials.inc"
    };
    std::vector<CallDenial> denials;
    for (const auto &row : rows)
        if (std::find(parts.begin(), parts.end(), row.part) != parts.end())
            for (const char *name : row.calls)
                denials.push_back({name, row.tests, row.error});
    return denials;
}

inline constexpr unsigned for_agents = 1, for_root = 2, for_gates = 4;

// Of one of them: besides allowed_calls and trace_calls, where nobody else has a list; besides those of allowed_calls and its own that root
// keeps; and besides those of a gate.
inline std::vector<CallAllowance> allowances_of(unsigned whom)
{
    struct AllowanceRow {
        unsigned whom = 0;
        std::vector<const char *> calls = {};
        ArgumentTest test = {};
    };
    static const std::vector<AllowanceRow> rows = {
#include "runner/filter/allowances.inc"
    };
    std::vector<CallAllowance> allowances;
    for (const auto &row : rows)
        if ((row.whom & whom) != 0)
            for (const char *name : row.calls)
                allowances.push_back({name, row.test});
    return allowances;
}

} // namespace pi_agent
