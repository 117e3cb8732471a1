// What root gives up, and what it still can: runner/root/confined/session_end.hpp. In a child each, as it is for good.
#include "runner/root/confined/session_end.hpp"

#include "support/forked.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <map>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace root_confinement_test {

namespace {

std::map<std::string, std::string> own_status()
{
    std::ifstream file("/proc/self/status");
    std::map<std::string, std::string> status;
    for (std::string line; std::getline(file, line);)
        status[line.substr(0, line.find(':'))] = line.substr(line.find_first_of("\t ") + 1);
    return status;
}

std::uint64_t mask(const std::map<std::string, std::string> &status, const char *name)
{
    return std::stoull(status.at(name), nullptr, 16);
}

// The errno of `call` when everything is given up: "0" where it succeeds.
std::string confined(const std::function<long()> &call)
{
    return in_child([&] {
        confine_root(AsRoot::claim());
        errno = 0;
        return std::to_string(call() < 0 ? errno : 0);
    });
}

const std::string denied = std::to_string(EPERM);

} // namespace

TEST_CASE("seven capabilities are left in every set, and neither new privileges nor other calls" * doctest::skip(not_root()))
{
    const auto before = own_status();
    constexpr std::uint64_t seven = 1U << CAP_SYS_ADMIN | 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL | 1U << CAP_DAC_OVERRIDE |
                                    1U << CAP_FOWNER | 1U << CAP_CHOWN;
    REQUIRE(mask(before, "CapEff") != (mask(before, "CapEff") & seven)); // else there would be nothing to give up
    const std::string said = in_child([&] {
        confine_root(AsRoot::claim());
        const auto now = own_status();
        std::string text;
        for (const char *name : {"CapEff", "CapPrm", "CapBnd"})
            text += mask(now, name) == (mask(before, name) & seven) ? "left " : "not " + now.at(name) + " ";
        return text + now.at("CapInh") + " " + now.at("CapAmb") + " " + now.at("NoNewPrivs") + " " + now.at("Seccomp");
    });
    CHECK(said == "left left left 0000000000000000 0000000000000000 1 2");
}

TEST_CASE("no program, mount, namespace, device, other process or raw socket comes after it" * doctest::skip(not_root()))
{
    const char *const arguments[] = {"/bin/true", nullptr};
    CHECK(confined([&] { return ::syscall(SYS_execve, arguments[0], arguments, nullptr); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_mount, "a", "/", "tmpfs", 0UL, nullptr); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_open_tree, AT_FDCWD, "/", 0U); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_setns, 0, 0); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_unshare, 0); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, 0UL, nullptr, nullptr, 0UL); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_mknod, "/tmp/confined", S_IFCHR | 0600, 0x103); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_bpf, 0, nullptr, 0); }) == denied);
    CHECK(confined([] { return ::syscall(SYS_init_module, nullptr, 0UL, ""); }) == denied);
    CHECK(confined([] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }) == denied);
    CHECK(confined([] { return ::socket(AF_INET, SOCK_RAW, 1); }) == denied);
}

TEST_CASE("what removing a session takes is left" * doctest::skip(not_root()))
{
    CHECK(confined([] { return ::syscall(SYS_umount2, "/proc/self", 0); }) ==
          std::to_string(EINVAL)); // no mount point, and so the kernel's word
    CHECK(confined([] { return ::socket(AF_UNIX, SOCK_DGRAM, 0); }) == "0");
    CHECK(confined([] { return ::chown("/dev/null", 0, 0); }) == "0");
    CHECK(confined([] {
              const pid_t child = ::fork();
              if (child == 0)
                  ::_exit(::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0 && ::setuid(0) != 0 ? 0 : 1);
              int status = 0;
              return ::waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
          }) == "0");
}

TEST_CASE("a process with a second thread, which would keep its capabilities, is refused" * doctest::skip(not_root()))
{
    const std::string said = in_child([] {
        const AsRoot root = AsRoot::claim(); // its calls are made by all threads, so a signal would wake the second one up
        std::thread second([] { ::pause(); });
        try {
            confine_root(root);
        } catch (const std::exception &refused) {
            second.detach();
            return std::string(refused.what());
        }
        second.detach();
        return std::string("entered");
    });
    CHECK_MESSAGE(said.find("more threads than one") != std::string::npos, said);
}

} // namespace root_confinement_test
