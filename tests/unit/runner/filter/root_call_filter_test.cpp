// Root's own list of system calls holds for every thread: runner/filter/seccomp_filter.hpp
#include "runner/filter/seccomp_filter.hpp"

#include "support/forked.hpp"

#include <cerrno>
#include <future>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace root_call_filter_test {

namespace {

// What a second thread, which was there before, says of a call that root's list does not hold; `before`: what it does first.
std::string second_thread_after_install(const std::function<void()> &before)
{
    return in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        std::promise<void> begun;
        std::promise<void> installed;
        std::string said;
        std::thread second([&] {
            before();
            begun.set_value();
            installed.get_future().wait();
            said = std::to_string(::syscall(SYS_personality, 0xffffffffUL) < 0 ? errno : 0);
        });
        begun.get_future().wait();
        std::string failure;
        try {
            install_root_call_filter();
        } catch (const std::exception &refused) {
            failure = refused.what();
        }
        installed.set_value();
        second.join();
        return failure + said;
    });
}

void filter_this_thread_alone()
{
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{1, &allow};
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

} // namespace

TEST_CASE("root's list of calls holds for all threads, or is refused")
{
    CHECK(second_thread_after_install([] {}) == std::to_string(EPERM));
    const std::string refused = second_thread_after_install(filter_this_thread_alone);
    CHECK_MESSAGE(refused.find("has a filter of its own") != std::string::npos, refused);
}

} // namespace root_call_filter_test
