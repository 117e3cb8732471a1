// Landlock, tried against processes and files outside: runner/inside/agent_process.hpp
#include "runner/inside/agent_process.hpp"

#include "common/base/channel.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace landlock_test {

namespace {

constexpr long first_version_with_scopes = 6;

bool kernel_has_scopes()
{
    return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= first_version_with_scopes;
}

constexpr const char *no_scopes = "this kernel has no Landlock scopes (Linux 6.12 does)";

// "scoped" or "not scoped", then what `task` says inside.
std::string in_scope(const std::function<std::string()> &task)
{
    return in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const bool scoped = restrict_with_landlock({}).scopes;
        return (scoped ? "scoped " : "not scoped ") + task();
    });
}

sockaddr_un abstract_name()
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "pi-agent-unit-" + std::to_string(::getpid());
    name.copy(&address.sun_path[1], sizeof address.sun_path - 1); // a leading NUL makes it abstract
    return address;
}

std::string errno_text(long result)
{
    return std::to_string(result < 0 ? errno : 0);
}

} // namespace

TEST_CASE("it says whether the kernel has scopes")
{
    const std::string expected = kernel_has_scopes() ? "scoped " : "not scoped ";
    CHECK(in_scope([] { return std::string(); }) == expected);
}

TEST_CASE("who stands below another cannot trace it, and is traced and signalled by it")
{
    if (!kernel_has_scopes()) return skipped(no_scopes);
    const auto trace = [](pid_t victim) { return errno_text(::syscall(SYS_kcmp, victim, ::getpid(), 0, 0, 0)); };
    CHECK(in_scope([&] {
              const pid_t above = ::getpid();
              const std::string before = in_child([&] { return trace(above); });
              const std::string below = in_child([&] {
                  const std::string where = stand_below_launcher() ? "below " : "not below ";
                  return where + trace(above);
              });
              const pid_t child = ::fork();
              if (child == 0) {
                  if (!stand_below_launcher()) ::_exit(1);
                  for (;;)
                      ::pause();
              }
              const std::string from_above = trace(child);
              const std::string sent = errno_text(::kill(child, SIGKILL));
              ::waitpid(child, nullptr, 0);
              return before + ", " + below + ", " + from_above + " " + sent;
          }) == "scoped 0, below " + std::to_string(EPERM) + ", 0 0");
}

TEST_CASE("no signal leaves the session, and those inside arrive")
{
    if (!kernel_has_scopes()) return skipped(no_scopes);
    const pid_t outside = ::getpid();
    CHECK(::kill(outside, 0) == 0);
    CHECK(in_scope([&] { return errno_text(::kill(outside, 0)); }) == "scoped " + std::to_string(EPERM));
    CHECK(in_scope([&] { return errno_text(::kill(outside, SIGUSR1)); }) == "scoped " + std::to_string(EPERM));
    CHECK(in_scope([] {
              const pid_t child = ::fork();
              if (child == 0)
                  for (;;)
                      ::pause();
              const std::string sent = errno_text(::kill(child, SIGKILL));
              int status = 0;
              ::waitpid(child, &status, 0);
              return sent + " " + text_of_end(status);
          }) == "scoped 0 died of signal 9");
}

TEST_CASE("no abstract socket outside is reached, and sockets inside are")
{
    if (!kernel_has_scopes()) return skipped(no_scopes);
    const UniqueFd server = UniqueFd::adopt(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = abstract_name();
    const auto *name = reinterpret_cast<const sockaddr *>(&address);
    REQUIRE(::bind(server.get(), name, sizeof address) == 0);
    REQUIRE(::listen(server.get(), 5) == 0);
    const auto connect_from_here = [&] {
        const UniqueFd client = UniqueFd::adopt(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        return errno_text(::connect(client.get(), name, sizeof address));
    };
    CHECK(connect_from_here() == "0");
    CHECK(in_scope(connect_from_here) == "scoped " + std::to_string(EPERM));
    CHECK(in_scope([] {
              std::array<int, 2> ends{};
              return errno_text(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()));
          }) == "scoped 0");
}

TEST_CASE("files of the view stay usable, and so does what stdio was given" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    const std::string path = directory.write("file", "x");
    CHECK(in_child([&] {
              ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
              const std::array<UniqueFd, 3> stdio{UniqueFd::adopt(::open(path.c_str(), O_RDWR)), UniqueFd(),
                                                  UniqueFd::adopt(::open("/", O_RDONLY))};
              restrict_with_landlock(stdio);
              std::string worked;
              if (::open(path.c_str(), O_RDWR) >= 0) worked += "open ";
              if (::open((directory / "new").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0) worked += "create ";
              if (::mkdir((directory / "made").c_str(), 0700) == 0) worked += "mkdir ";
              if (::rename((directory / "new").c_str(), (directory / "made/new").c_str()) == 0) worked += "rename ";
              if (::open(("/proc/self/fd/" + std::to_string(stdio[0].get())).c_str(), O_RDWR) >= 0) worked += "reopen ";
              return worked;
          }) == "open create mkdir rename reopen ");
}

TEST_CASE("a directory descriptor from outside the view leads nowhere" * doctest::skip(not_root()))
{
    if (!kernel_has_scopes()) return skipped(no_scopes); // newer than the rules for files, so those are there too
    const std::string answer = in_child([]() -> std::string {
        // A file system that is mounted nowhere: beneath no "/" at all.
        const UniqueFd context = UniqueFd::adopt(static_cast<int>(::syscall(SYS_fsopen, "tmpfs", 0)));
        if (!context || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return "not possible here";
        const UniqueFd outside = UniqueFd::adopt(static_cast<int>(::syscall(SYS_fsmount, context.get(), 0, 0)));
        if (!outside) return "not possible here";
        const auto make = [&](const char *name) { return errno_text(::openat(outside.get(), name, O_WRONLY | O_CREAT, 0600)); };
        const std::string before = make("before");
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        restrict_with_landlock({});
        return before + " " + make("after") + " " + errno_text(::openat(outside.get(), "before", O_RDONLY));
    });
    if (answer == "not possible here")
        skipped("this place makes no detached mounts");
    else
        CHECK(answer == "0 " + std::to_string(EACCES) + " " + std::to_string(EACCES));
}

TEST_CASE("a file in memory as stdio is no reason to refuse, and stays usable" * doctest::skip(not_root()))
{
    CHECK(in_child([&] {
              ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
              const std::array<UniqueFd, 3> stdio{UniqueFd::adopt(::memfd_create("input", 0)), UniqueFd(), UniqueFd()};
              restrict_with_landlock(stdio);
              return std::string(::write(stdio[0].get(), "x", 1) == 1 ? "written" : "not written");
          }) == "written");
}

} // namespace landlock_test
