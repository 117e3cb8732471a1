// Installing what runner/filter/make_call_filters.cpp wrote down.
#include "runner/filter/seccomp_filter.hpp"

#include "common/seams/seams.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

#include "runner/filter/call_filters.inc"

} // namespace

sock_fprog program_of(std::span<const sock_filter> filter) noexcept
{
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the kernel only reads it
    return {static_cast<unsigned short>(filter.size()), const_cast<sock_filter *>(filter.data())};
}

void load_call_filter(std::span<const sock_filter> filter, const char *what, unsigned flags)
{
    const sock_fprog program = program_of(filter);
    const long refusing = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (refusing < 0) throw_errno(std::string("seccomp: ") + what);
    if (refusing > 0) // the number of a thread (seccomp(2), SECCOMP_FILTER_FLAG_TSYNC)
        throw Failure(ExitStatus::internal, std::string("seccomp: ") + what + ": a thread of this process has a filter of its own");
}

void give_up_new_privileges()
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("seccomp: giving up new privileges");
}

void install_root_call_filter()
{
    load_call_filter(root_call_program, "installing the list of root's calls", SECCOMP_FILTER_FLAG_TSYNC);
}

void install_mode_call_filter()
{
    if (!defence_is_on("mode-call-filter")) return;
    give_up_new_privileges();
    load_call_filter(mode_call_program, "installing the list of calls that change modes");
}

void install_gate_call_filter()
{
    if (!defence_is_on("gate-call-filter")) return;
    give_up_new_privileges();
    load_call_filter(gate_call_program, "installing the list of the gate's calls", SECCOMP_FILTER_FLAG_TSYNC);
}

} // namespace pi_agent
