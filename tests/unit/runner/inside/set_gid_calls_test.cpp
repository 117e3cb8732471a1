// Calls under the filter that asks, answered as in a session but by a changer of the test's: runner/inside/agent_process.hpp
#include "runner/inside/agent_process.hpp"

#include "common/base/channel.hpp"
#include "runner/wire/answer.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <functional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace set_gid_calls_test {

namespace {

// What `call` says in a process of its own under the filter, and then "MODE of INODE" for what the changer was asked, if it was.
std::string asked_by(const std::function<long()> &call, bool has_own_numbers = false)
{
    return in_child([&] {
        auto [ours, changers] = make_channel();
        std::string asked;
        UniqueFd questions = install_agent_call_filter(SetGidCalls::asked);
        const pid_t caller = ::fork(); // before the first thread: of a lock that a thread holds, a fork has a copy that nobody opens
        if (caller == 0) {
            errno = 0;
            ::_exit(call() < 0 ? errno : 0);
        }
        std::thread changer([&, channel = FdRef(changers)] {
            while (const auto packet = receive_packet(channel, Deadline::max())) {
                struct stat facts {};
                ::fstat(packet->fds.at(0).get(), &facts);
                asked += " " + std::to_string(decode_fields<ModeRequest>(packet->bytes).mode) + " of " + std::to_string(facts.st_ino);
                send_packet(channel, encode(ModeAnswer{0}), {}, Deadline::max());
            }
        });
        answer_agent_calls(std::move(questions), std::move(ours), has_own_numbers);
        int status = 0;
        ::waitpid(caller, &status, 0);
        ::shutdown(changers.get(), SHUT_RDWR);
        changer.join();
        return std::to_string(WEXITSTATUS(status)) + asked;
    });
}

} // namespace

TEST_CASE("whatever way a directory is named, that one is asked for")
{
    const TemporaryDirectory place;
    const std::string directory = place.make("directory");
    REQUIRE(::symlink("directory", (place / "link").c_str()) == 0);
    struct stat facts {};
    REQUIRE(::stat(directory.c_str(), &facts) == 0);
    const std::string asked = "0 1517 of " + std::to_string(facts.st_ino); // 02755
    const std::string link = place / "link";
    CHECK(asked_by([&] { return ::syscall(SYS_chmod, directory.c_str(), 02755); }) == asked);
    CHECK(asked_by([&] { return ::syscall(SYS_chmod, link.c_str(), 02755); }) == asked);
    CHECK(asked_by([&] { return ::syscall(SYS_fchmod, ::open(directory.c_str(), O_RDONLY), 02755); }) == asked);
    CHECK(asked_by([&] { return ::syscall(SYS_fchmodat, ::open(place.path().c_str(), O_RDONLY), "directory", 02755); }) == asked);
    CHECK(asked_by([&] { return ::syscall(452, AT_FDCWD, directory.c_str(), 02755, AT_SYMLINK_NOFOLLOW); }) == asked);
    CHECK(asked_by([&] { return ::syscall(452, ::open(directory.c_str(), O_PATH), "", 02755, AT_EMPTY_PATH); }) == asked);
    CHECK(asked_by([&] { return ::chdir(place.path().c_str()) != 0 ? -1 : ::syscall(SYS_chmod, "directory", 02755); }) == asked);
    for (const char *of_itself : {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"})
        CHECK(asked_by([&] {
                  const std::string name = of_itself + std::to_string(::open(directory.c_str(), O_PATH));
                  return ::syscall(SYS_chmod, name.c_str(), 02755);
              }) == asked);
}

TEST_CASE("what cannot be named is not asked for, and the caller hears why")
{
    const TemporaryDirectory place;
    const std::string file = place.write("file", "x");
    CHECK(asked_by([&] { return ::syscall(SYS_chmod, (file + "/x").c_str(), 02755); }) == std::to_string(ENOTDIR));
    CHECK(asked_by([&] { return ::syscall(SYS_chmod, (place / "none").c_str(), 02755); }) == std::to_string(ENOENT));
    CHECK(asked_by([] { return ::syscall(SYS_chmod, "", 02755); }) == std::to_string(ENOENT));
    CHECK(asked_by([] { return ::syscall(SYS_chmod, 1L, 02755); }) == std::to_string(EFAULT));
    CHECK(asked_by([] { return ::syscall(SYS_chmod, std::string(5000, 'x').c_str(), 02755); }) == std::to_string(ENAMETOOLONG));
    CHECK(asked_by([] { return ::syscall(SYS_fchmod, 900, 02755); }) == std::to_string(EBADF));
    CHECK(asked_by([] { return ::syscall(SYS_fchmodat, 900, "x", 02755); }) == std::to_string(EBADF));
    CHECK(asked_by([&] { return ::syscall(452, AT_FDCWD, file.c_str(), 02755, 0x40000); }) == std::to_string(EINVAL));
}

TEST_CASE("a group without a number here is given where it is there already, and else the kernel answers" * doctest::skip(not_root()))
{
    const TemporaryDirectory place;
    const std::string with = place.write("with", "x");
    const std::string without = place.write("without", "x");
    REQUIRE(::chown(with.c_str(), 0, unknown_group) == 0);
    const auto as_daemon = [](const std::function<long()> &call) { // who owns neither: the kernel refuses
        return [call] { return ::setresuid(1, 1, 1) != 0 ? 0 : call(); };
    };
    CHECK(asked_by([&] { return ::syscall(SYS_chown, with.c_str(), 0, unknown_group); }) == "0");
    CHECK(asked_by([&] { return ::syscall(SYS_fchownat, AT_FDCWD, with.c_str(), -1, unknown_group, 0); }) == "0");
    CHECK(asked_by([&] { return ::syscall(SYS_fchown, ::open(with.c_str(), O_RDONLY), -1, unknown_group); }) == "0");
    CHECK(asked_by(as_daemon([&] { return ::syscall(SYS_chown, without.c_str(), -1, unknown_group); })) != "0");
    CHECK(asked_by([&] { return ::syscall(SYS_lchown, (place / "none").c_str(), 0, unknown_group); }) == std::to_string(ENOENT));
}

TEST_CASE("a process tunes its own threads by their numbers, and no process of somebody else's")
{
    const std::string denied = std::to_string(EPERM);
    static sched_param ordinary{};
    rlimit limits{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limits) == 0);
    const auto by_policy = [&](pid_t whom) { return [whom] { return ::syscall(SYS_sched_setscheduler, whom, SCHED_OTHER, &ordinary); }; };
    const pid_t other = ::getpid(); // of the same account, with other threads
    CHECK(asked_by([] { return ::syscall(SYS_sched_setscheduler, ::syscall(SYS_gettid), SCHED_OTHER, &ordinary); }) == "0");
    CHECK(asked_by([] { return ::syscall(SYS_setpriority, PRIO_PROCESS, ::syscall(SYS_gettid), 19); }) == "0");
    CHECK(asked_by([] { return ::syscall(SYS_ioprio_set, 1, ::syscall(SYS_gettid), 3 << 13); }) == "0");
    CHECK(asked_by([] {
              long said = -1;
              int problem = 0;
              const long first = ::syscall(SYS_gettid);
              std::thread([&] {
                  said = ::syscall(SYS_sched_setscheduler, first, SCHED_OTHER, &ordinary);
                  problem = errno;
              }).join();
              errno = problem;
              return said;
          }) == "0");
    CHECK(asked_by([&] { return ::syscall(SYS_prlimit64, other, RLIMIT_NOFILE, nullptr, nullptr); }) == "0");
    CHECK(asked_by([&] { return ::syscall(SYS_prlimit64, other, RLIMIT_NOFILE, &limits, nullptr); }) == denied);
    CHECK(asked_by(by_policy(other)) == denied);
    CHECK(asked_by([] { return ::syscall(SYS_sched_setscheduler, ::getppid(), SCHED_OTHER, &ordinary); }) == denied);
    CHECK(asked_by([&] { return ::syscall(SYS_setpriority, PRIO_PROCESS, other, 19); }) == denied);
    CHECK(asked_by([] { return ::syscall(SYS_setpriority, PRIO_PGRP, ::getpgrp(), 19); }) == denied);
    CHECK(asked_by([] { return ::syscall(SYS_setpriority, PRIO_USER, 0, 19); }) == denied);
    CHECK(asked_by([] { return ::syscall(SYS_ioprio_set, 3, 0, 3 << 13); }) == denied);
    // Where numbers are the session's own: each process but the one that answers.
    CHECK(asked_by(by_policy(other), true) == "0");
    CHECK(asked_by([] { return ::syscall(SYS_sched_setscheduler, ::getppid(), SCHED_OTHER, &ordinary); }, true) == denied);
    CHECK(asked_by([] { return ::syscall(SYS_setpriority, PRIO_USER, 0, 19); }, true) == denied);
}

TEST_CASE("who cannot look at threads lets nobody be tuned by number, least of all itself" * doctest::skip(not_root()))
{
    const TemporaryDirectory place;
    REQUIRE(::chmod(place.path().c_str(), 0755) == 0);
    const std::string closed = place.make("proc");
    const auto said = [&](const std::function<pid_t()> &whom) {
        return in_child([&]() -> std::string { // /proc is there, but this account may not look into it
            if (::chmod(closed.c_str(), 0700) != 0 || ::chroot(place.path().c_str()) != 0 || ::chdir("/") != 0) return "no place";
            if (::setresuid(1, 1, 1) != 0) return "no account";
            return asked_by([&] { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(whom()), 19); }, true);
        });
    };
    const std::string denied = std::to_string(EPERM);
    CHECK(said([] { return ::gettid(); }) == "0");
    CHECK(said([] { return ::getppid(); }) == denied);
    CHECK(said([] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(::alarm(1) == 0 ? ::pause() : 1); // until nobody waits for its number any more
              return child;
          }) == denied);
}

TEST_CASE("what a process calls its own is another's by its number")
{
    CHECK(seen_by(7, "/proc/self/fd/3") == "/proc/7/fd/3");
    CHECK(seen_by(7, "/proc/thread-self/cwd/x") == "/proc/7/cwd/x");
    CHECK(seen_by(7, "/dev/fd/3") == "/proc/7/fd/3");
    for (const std::string other : {"", "x", "/dev/fd", "/proc/self", "/proc/selfish/x", "a/proc/self/x"})
        CHECK(seen_by(7, other) == other);
}

} // namespace set_gid_calls_test
