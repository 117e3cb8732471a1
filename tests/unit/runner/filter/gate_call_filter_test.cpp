// What a gate may still call once it has its order: runner/filter/seccomp_filter.hpp
#include "runner/filter/seccomp_filter.hpp"

#include "support/forked.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <functional>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace gate_call_filter_test {

namespace {

constexpr std::size_t page_bytes = 4096;

// Whether memory can be had like this: 0, or -1 with errno.
long mapped(int protection)
{
    return ::mmap(nullptr, page_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

// Memory of one's own, to be read and written; the child ends with it.
void *page()
{
    return ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// The errno of a call after the filter, or 0.
std::string after_install(const std::function<long()> &call)
{
    return in_child([&] {
        install_gate_call_filter();
        return std::to_string(call() < 0 ? errno : 0);
    });
}

} // namespace

TEST_CASE("a gate still connects, takes connections, and asks the resolver")
{
    const std::function<long()> calls[] = {
        [] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); },
        [] { return ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0); },
        [] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); },
        [] { return ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); },
        [] { return ::syscall(SYS_open, "/etc/passwd", O_RDONLY | O_CLOEXEC); },
        [] { return ::epoll_create1(EPOLL_CLOEXEC); },
        [] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); },
        [] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC); },
        [] { return mapped(PROT_READ | PROT_WRITE); },
        [] { return mapped(PROT_READ | PROT_EXEC); }, // as a module of the resolver
        [] { return static_cast<long>(::mprotect(page(), page_bytes, PROT_READ)); },
        [] {
            const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            int on = 1;
            sockaddr_in any{};
            any.sin_family = AF_INET;
            if (::bind(server, reinterpret_cast<const sockaddr *>(&any), sizeof any) != 0 || ::ioctl(server, FIONBIO, &on) != 0) return -1L;
            return static_cast<long>(::accept(server, nullptr, nullptr)); // it does not listen
        },
        [] {
            addrinfo *found = nullptr;
            const int problem = ::getaddrinfo("localhost", nullptr, nullptr, &found);
            if (found != nullptr) ::freeaddrinfo(found);
            return problem == EAI_SYSTEM && errno == EPERM ? -1L : 0L; // there may be nobody to ask
        },
    };
    for (const auto &call : calls) {
        const std::string error = after_install(call);
        CHECK_MESSAGE((error == "0" || error == std::to_string(EINVAL) || error == std::to_string(EAFNOSUPPORT)), error);
    }
}

TEST_CASE("a gate starts nothing, writes no file, and opens no other door of the kernel")
{
    const std::function<long()> calls[] = {
        [] { return ::syscall(SYS_fork); },
        [] { return ::syscall(SYS_execve, nullptr, nullptr, nullptr); },
        [] { return ::syscall(SYS_execveat, -1, nullptr, nullptr, nullptr, 0); },
        [] { return ::open("/tmp/gate-call-filter-test", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); },
        [] { return ::open("/dev/null", O_RDWR | O_CLOEXEC); },
        [] { return ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); },
        [] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); },
        [] { return ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); },
        [] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); },
        [] { return ::syscall(SYS_kill, ::getpid(), 0); },
        [] { return ::syscall(SYS_unlink, "/tmp/gate-call-filter-test"); },
        [] { return ::syscall(SYS_memfd_create, "x", 0U); },
        [] { return ::syscall(SYS_prctl, 4, 1, 0, 0, 0); }, // PR_SET_DUMPABLE
        [] { return mapped(PROT_READ | PROT_WRITE | PROT_EXEC); },
        [] { return static_cast<long>(::mprotect(page(), page_bytes, PROT_READ | PROT_EXEC)); },
    };
    for (const auto &call : calls)
        CHECK(after_install(call) == std::to_string(EPERM));
}

} // namespace gate_call_filter_test
