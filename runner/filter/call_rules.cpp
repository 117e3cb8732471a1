// Reads the rows of calls.toml.
#include "runner/filter/call_rules.hpp"

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

namespace {

constexpr std::uint64_t all_namespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
static_assert(AF_UNIX == 1); // the rows of socketpair(2) name the other bits

} // namespace

std::vector<CallDenial> denials_of(std::initializer_list<DenialPart> parts)
{
    struct Row {
        DenialPart part{};
        std::vector<const char *> calls = {};
        std::vector<ArgumentTest> tests = {};
        int error = EPERM;
    };
    static const std::vector<Row> rows = {
#include "runner/filter/denials.inc"
    };
    std::vector<CallDenial> denials;
    for (const auto &row : rows)
        if (std::find(parts.begin(), parts.end(), row.part) != parts.end())
            for (const char *name : row.calls)
                denials.push_back({name, row.tests, row.error});
    return denials;
}

std::vector<CallAllowance> allowances_of(unsigned whom)
{
    struct Row {
        unsigned whom = 0;
        std::vector<const char *> calls = {};
        ArgumentTest test = {};
    };
    static const std::vector<Row> rows = {
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
