// The rules of call_rules.hpp as filters of the kernel's.
#include "runner/seccomp_filter.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"
#include "runner/call_names.hpp"
#include "runner/call_rules.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/seccomp.h>
#include <memory>
#include <seccomp.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

using Filter = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

void check(int result, const char *what)
{
    if (result < 0) throw Failure(ExitStatus::unavailable, std::string("seccomp: ") + what + ": " + std::strerror(-result));
}

// A call that this architecture or libseccomp does not know is met by systemd's own filter, which knows numbers above the known ones.
bool is_known(const char *name, int &number)
{
    number = seccomp_syscall_resolve_name(name);
    return number != __NR_SCMP_ERROR;
}

// The library's macros for this are C only.
scmp_arg_cmp comparison_of(const ArgumentTest &test)
{
    if (!test.equal) return {test.index, SCMP_CMP_NE, test.value, 0};
    return {test.index, SCMP_CMP_MASKED_EQ, test.mask, test.value};
}

void add(const Filter &filter, std::uint32_t action, const char *name, const std::vector<ArgumentTest> &tests)
{
    int number = 0;
    if (!is_known(name, number)) return;
    std::vector<scmp_arg_cmp> comparisons;
    for (const auto &test : tests)
        comparisons.push_back(comparison_of(test));
    check(seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(comparisons.size()), comparisons.data()), name);
}

void add(const Filter &filter, const std::vector<CallDenial> &denials)
{
    for (const auto &denial : denials)
        add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(denial.error)), denial.name, denial.tests);
}

Filter make_filter(std::uint32_t otherwise)
{
    Filter filter(seccomp_init(otherwise), seccomp_release);
    if (!filter) throw Failure(ExitStatus::unavailable, "seccomp: no filter could be made");
    // A call made as another architecture (32-bit, x32) ends the process.
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "architecture");
    check(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 1), "no_new_privs");
    return filter;
}

void allow(const Filter &filter, const char *name)
{
    int number = 0;
    if (is_known(name, number) && number >= 0) check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0), name);
}

void allow(const Filter &filter, const std::vector<CallAllowance> &allowances)
{
    for (const auto &allowance : allowances)
        add(filter, SCMP_ACT_ALLOW, allowance.name, {allowance.test});
}

// What seccomp_load(3) does most of its time, without loading it.
std::vector<sock_filter> compile(const Filter &filter)
{
    const UniqueFd file = UniqueFd::adopt(memfd_create("filter", MFD_CLOEXEC));
    if (!file) throw_errno("seccomp: making a filter");
    check(seccomp_export_bpf(filter.get(), file.get()), "making a filter");
    std::vector<sock_filter> program(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)) / sizeof(sock_filter));
    const std::size_t size = program.size() * sizeof(sock_filter);
    if (size == 0 || program.size() > BPF_MAXINSNS || pread(file.get(), program.data(), size, 0) != static_cast<ssize_t>(size))
        throw Failure(ExitStatus::unavailable, "seccomp: no filter could be made");
    return program;
}

void load(const std::vector<sock_filter> &filter, unsigned flags, const char *what)
{
    const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter *>(filter.data())};
    const long refusing = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (refusing < 0) throw_errno(std::string("seccomp: ") + what);
    if (refusing > 0) // the number of a thread (seccomp(2), SECCOMP_FILTER_FLAG_TSYNC)
        throw Failure(ExitStatus::internal, std::string("seccomp: ") + what + ": a thread of this process has a filter of its own");
}

} // namespace

RootCallFilter::RootCallFilter()
{
    const Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
    for (const char *name : allowed_calls)
        if (std::find(std::begin(withheld_from_root), std::end(withheld_from_root), std::string_view(name)) == std::end(withheld_from_root))
            allow(filter, name);
    for (const char *name : root_calls)
        allow(filter, name);
    add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", {});
    allow(filter, root_call_allowances());
    program_ = compile(filter);
}

void RootCallFilter::install() const
{
    load(program_, SECCOMP_FILTER_FLAG_TSYNC, "installing the list of root's calls");
}

void install_call_filter()
{
    if (!defence_is_on("call-filter")) return;
    const Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
    for (const char *name : allowed_calls)
        allow(filter, name);
    add(filter, unknown_calls());
    allow(filter, call_allowances());
    check(seccomp_load(filter.get()), "installing the list of calls");
}

AgentCallFilter::AgentCallFilter()
{
    if (!defence_is_on("seccomp-filter")) return;
    const Filter filter = make_filter(SCMP_ACT_ALLOW);
    add(filter, call_denials());
    if (defence_is_on("limits-of-others")) add(filter, tuning_denials());
    program_ = compile(filter);
}

void AgentCallFilter::install() const
{
    if (program_.empty()) return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("seccomp: giving up new privileges");
    load(program_, 0, "installing the filter");
}

} // namespace pi_agent
