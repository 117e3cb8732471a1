// Landlock scopes, tried against processes outside: runner/landlock.hpp
#include "runner/landlock.hpp"

#include "common/fd.hpp"
#include "support/forked.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace {

constexpr long first_version_with_scopes = 6;

bool kernel_has_scopes()
{
    return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= first_version_with_scopes;
}

// "scoped" or "not scoped", then what `task` says inside.
std::string in_scope(const std::function<std::string()> &task)
{
    return in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const bool scoped = scope_with_landlock();
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
    if (!kernel_has_scopes()) MESSAGE("skipped: this kernel has no Landlock scopes; what they forbid was not tried");
}

TEST_CASE("no signal leaves the session, and those inside arrive")
{
    if (!kernel_has_scopes()) return;
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
    if (!kernel_has_scopes()) return;
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
