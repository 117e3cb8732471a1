// Calls made under a session's own filter, in a child each: runner/inside/agent_process.hpp
#include "common/policy/policy_paths.hpp"
#include "runner/inside/agent_process.hpp"
#include "support/forked.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_filter_test {

namespace {

// The errno of `call` under the filter of one session.
std::string under_session_filter(const SessionCalls &calls, const std::function<long()> &call)
{
    return in_child([&] {
        if (!install_session_call_filter(session_call_program(calls))) return "not installed: " + std::to_string(errno);
        errno = 0;
        return std::to_string(call() < 0 ? errno : 0);
    });
}

const std::string denied = std::to_string(EPERM);

} // namespace

TEST_CASE("a session's own filter refuses the calls that it names, and no other")
{
    const auto lock = [] { return ::syscall(SYS_munlockall); };
    CHECK(under_session_filter({{"munlockall"}}, lock) == denied);
    CHECK(under_session_filter({{"mlock2", "name_to_handle_at"}}, lock) == "0");
    CHECK(under_session_filter({{"munlockall", "no_such_call"}}, [] { return static_cast<long>(::getpid()); }) == "0");
    CHECK(under_session_filter({{"name_to_handle_at"}}, [] { return ::syscall(SYS_name_to_handle_at, -1L, -1L, -1L, -1L, -1L); }) ==
          denied);
    std::vector<std::string> all;
    for (const auto &one : deniable_calls)
        all.emplace_back(one.name);
    CHECK(under_session_filter({all}, lock) == denied);
    CHECK(under_session_filter({all}, [] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return static_cast<long>(::waitpid(child, nullptr, 0));
          }) == "0");
}

TEST_CASE("a session's own filter lets a call pass that a debugger has taken the number from, and ends who calls as another architecture")
{
    CHECK(under_session_filter({{"mlock"}}, [] { return ::syscall(-1L); }) == std::to_string(ENOSYS));
    CHECK(under_session_filter({{"mlock"}}, [] {
              const pid_t child = ::fork();
              if (child == 0) {
                  ::syscall(0x40000000L + SYS_getpid);
                  ::_exit(0);
              }
              int status = 0;
              ::waitpid(child, &status, 0);
              return static_cast<long>(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? 0 : -1);
          }) == "0");
}

TEST_CASE("a session's own filter lets only the usual personality pass, also without random addresses, and the question")
{
    const auto ask = [](unsigned long personality) { return [personality] { return ::syscall(SYS_personality, personality); }; };
    for (const unsigned long other : {0x0400000UL, 0x0100000UL, 0x0440000UL, 0x0008UL, 0x0200000UL}) // READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, …
        CHECK_MESSAGE(under_session_filter({{}, true}, ask(other)) == denied, other);
    CHECK(under_session_filter({{}, true}, ask(0x0040000)) == "0"); // ADDR_NO_RANDOMIZE
    CHECK(under_session_filter({{}, true}, ask(0xffffffff)) == "0");
    CHECK(under_session_filter({{}, true}, ask(0)) == "0");
    CHECK(under_session_filter({{"mlock"}, false}, ask(0x0440000)) == "0");
}

TEST_CASE("a session's own filter lets only sockets of its kinds be made, and pairs of sockets")
{
    const auto make = [](int family) { return [family] { return static_cast<long>(::socket(family, SOCK_DGRAM, 0)); }; };
    const std::string no_such_family = std::to_string(EAFNOSUPPORT);
    const std::vector<int> families = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    for (unsigned set = 0; set <= all_address_families; ++set)
        for (std::size_t index = 0; index < families.size(); ++index) {
            CAPTURE(set);
            const std::string said = under_session_filter({{}, false, set}, make(families[index]));
            CHECK_MESSAGE((said == no_such_family) == ((set & (1U << index)) == 0), families[index]);
        }
    CHECK(under_session_filter({{}, false, 2U}, [] {
              std::array<int, 2> pair{};
              return static_cast<long>(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()));
          }) == "0");
}

TEST_CASE("a session's own filter is empty where nothing is refused, and has a name for each number of this machine")
{
    CHECK(session_call_program({}).empty());
    CHECK(session_call_program({{"mlock"}}).size() == session_call_program({{"mlock", "mlock"}}).size() - 2);
    CHECK(session_call_program({{"no_such_call"}}).size() == session_call_program({{"mlock"}}).size() - 2);
}

} // namespace session_filter_test
