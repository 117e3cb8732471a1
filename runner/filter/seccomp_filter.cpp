// Installing what runner/filter/make_call_filters.cpp wrote down.
#include "runner/filter/seccomp_filter.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

#include "runner/filter/call_filters.inc"

constexpr unsigned wait_killable = 1U << 5U; // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, newer than some headers

template <std::size_t count>
sock_fprog program_of(const sock_filter (&filter)[count])
{
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the kernel only reads it
    return {static_cast<unsigned short>(count), const_cast<sock_filter *>(filter)};
}

template <std::size_t count>
void load(const sock_filter (&filter)[count], unsigned flags, const char *what)
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

} // namespace

void install_root_call_filter()
{
    load(root_call_program, SECCOMP_FILTER_FLAG_TSYNC, "installing the list of root's calls");
}

void install_call_filter()
{
    if (!defence_is_on("call-filter")) return;
    give_up_new_privileges();
    load(call_program, 0, "installing the list of calls");
}

void refuse_tracing()
{
    if (!defence_is_on("seccomp-filter")) return;
    give_up_new_privileges();
    load(no_tracing_program, 0, "refusing what debuggers do");
}

void refuse_attributes()
{
    if (!defence_is_on("attribute-filter")) return;
    give_up_new_privileges();
    load(no_attributes_program, 0, "refusing what changes attributes of files");
}

UniqueFd install_agent_call_filter(SetGidCalls set_gid)
{
    if (!defence_is_on("seccomp-filter")) return {};
    give_up_new_privileges();
    const bool others_too = defence_is_on("limits-of-others");
    if (set_gid == SetGidCalls::asked && others_too) {
        // Once the question is read, a signal interrupts no chmod(2), as outside (Linux 5.19).
        const sock_fprog program = program_of(asking_call_program);
        UniqueFd questions = UniqueFd::adopt(
            static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | wait_killable, &program)));
        if (questions) return questions;
        if (errno != EBUSY && errno != EINVAL) throw_errno("seccomp: installing the filter that asks");
    }
    if (others_too)
        load(agent_call_program, 0, "installing the filter");
    else
        load(agent_call_program_without_tuning, 0, "installing the filter");
    return {};
}

bool install_session_call_filter(const std::vector<sock_filter> &program) noexcept
{
    if (program.empty()) return true;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the kernel only reads it
    const sock_fprog lines{static_cast<unsigned short>(program.size()), const_cast<sock_filter *>(program.data())};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &lines) == 0;
}

void install_mode_call_filter()
{
    if (!defence_is_on("mode-call-filter")) return;
    give_up_new_privileges();
    load(mode_call_program, 0, "installing the list of calls that change modes");
}

void install_gate_call_filter()
{
    if (!defence_is_on("gate-call-filter")) return;
    give_up_new_privileges();
    load(gate_call_program, SECCOMP_FILTER_FLAG_TSYNC, "installing the list of the gate's calls");
}

} // namespace pi_agent
