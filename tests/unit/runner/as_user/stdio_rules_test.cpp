// Every kind of descriptor that a caller could hand over as stdio: runner/as_user/project.hpp
#include "runner/as_user/project.hpp"

#include "common/base/error.hpp"
#include "support/descriptors.hpp"
#include "support/device.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <cstdlib>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace stdio_rules_test {

namespace {

// What is said of `fd` as standard input, between two descriptors that are fine.
Caught judge(UniqueFd fd)
{
    REQUIRE(fd.is_open());
    const std::array<UniqueFd, 3> stdio{std::move(fd), open_path("/dev/null"), open_path("/dev/null")};
    return failure_of([&] { check_stdio(stdio, {}); });
}

UniqueFd adopt(long fd)
{
    return UniqueFd::adopt(static_cast<int>(fd));
}

void check_refused(UniqueFd fd, const std::string &what)
{
    const Caught caught = judge(std::move(fd));
    CHECK(caught.status == 77);
    CHECK(caught.text ==
          "denied: standard input is " + what + "; the agent gets only pipes, regular files, sockets, /dev/null, /dev/zero and /dev/full");
}

} // namespace

TEST_CASE("pipes, regular files, sockets and the three harmless devices are allowed")
{
    const TemporaryDirectory directory;
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    CHECK(judge(UniqueFd::adopt(ends[0])).status == 0);
    CHECK(judge(UniqueFd::adopt(ends[1])).status == 0);
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK(judge(open_path(directory / "fifo", O_RDWR)).status == 0);
    const std::string file = directory.write("file", "x");
    for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_APPEND})
        CHECK(judge(open_path(file, flags)).status == 0);
    CHECK(judge(adopt(::memfd_create("unit", MFD_CLOEXEC))).status == 0);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET})
        CHECK(judge(adopt(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0))).status == 0);
    CHECK(judge(adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))).status == 0);
    for (const std::string device : {"/dev/null", "/dev/zero", "/dev/full"})
        CHECK_MESSAGE(judge(open_path(device, O_RDWR)).status == 0, device);
}

TEST_CASE("a file whose name is gone is still a file")
{
    const TemporaryDirectory directory;
    UniqueFd fd = open_path(directory.write("file", "x"));
    REQUIRE(::unlink((directory / "file").c_str()) == 0);
    CHECK(judge(std::move(fd)).status == 0);
}

TEST_CASE("a directory is refused, since .. leads out of it")
{
    const TemporaryDirectory directory;
    check_refused(open_path(directory.path()), "a directory");
    check_refused(open_path(directory.path(), O_RDONLY | O_DIRECTORY), "a directory");
    check_refused(open_path("/"), "a directory");
}

TEST_CASE("a path descriptor is refused, whatever it stands for")
{
    const TemporaryDirectory directory;
    const auto file = directory.write("file", "x");
    const auto link = directory.link("link", "file");
    check_refused(open_path(directory.path(), O_PATH), "a path descriptor");
    check_refused(open_path(file, O_PATH), "a path descriptor");
    check_refused(open_path(link, O_PATH | O_NOFOLLOW), "a path descriptor");
    check_refused(open_path("/dev/null", O_PATH), "a path descriptor");
}

TEST_CASE("a terminal is refused, either end of it")
{
    UniqueFd master = adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!master) {
        skipped("this place has no pseudo terminals");
        return;
    }
    REQUIRE(::grantpt(master.get()) == 0);
    REQUIRE(::unlockpt(master.get()) == 0);
    const std::string slave = ::ptsname(master.get());
    check_refused(open_path(slave, O_RDWR | O_NOCTTY), "a terminal or another device");
    check_refused(std::move(master), "a terminal or another device");
}

TEST_CASE("every other device is refused, those with harmless numbers of another major too")
{
    for (const std::string device : {"/dev/random", "/dev/urandom", "/dev/ptmx", "/dev/fuse", "/dev/kmsg", "/dev/net/tun"}) {
        CAPTURE(device);
        const int fd = ::open(device.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) check_refused(UniqueFd::adopt(fd), "a terminal or another device");
    }
    CHECK(::access("/dev/urandom", F_OK) == 0); // else this checked nothing
}

TEST_CASE("descriptors without a file are refused")
{
    sigset_t none;
    sigemptyset(&none);
    check_refused(adopt(::eventfd(0, EFD_CLOEXEC)), "something unknown");
    check_refused(adopt(::epoll_create1(EPOLL_CLOEXEC)), "something unknown");
    check_refused(adopt(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)), "something unknown");
    check_refused(adopt(::signalfd(-1, &none, SFD_CLOEXEC)), "something unknown");
}

TEST_CASE("a descriptor of a process is refused")
{
    const Caught caught = judge(adopt(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    CHECK(caught.status == 77);
}

TEST_CASE("a block device is refused" * doctest::skip(not_root()))
{
    UniqueFd loop = open_device(S_IFBLK, 7, 0, O_RDONLY | O_NONBLOCK); // Linux, Documentation/admin-guide/devices.txt
    if (!loop) return skipped("this place has no loop device that could be opened");
    check_refused(std::move(loop), "a block device");
}

TEST_CASE("each of the three is judged, and named")
{
    const std::array<const char *, 3> names = {"standard input", "standard output", "standard error"};
    for (std::size_t bad = 0; bad < 3; ++bad) {
        std::array<UniqueFd, 3> stdio{open_path("/dev/null"), open_path("/dev/null"), open_path("/dev/null")};
        stdio[bad] = open_path("/");
        const Caught caught = failure_of([&] { check_stdio(stdio, {}); });
        CHECK(caught.status == 77);
        CHECK(has(caught.text, std::string("denied: ") + names[bad] + " is a directory"));
    }
}

TEST_CASE("what is on the terminal is not there to be judged, and the rest is")
{
    const std::array<UniqueFd, 3> stdio{UniqueFd(), open_path("/"), UniqueFd()};
    CHECK(failure_of([&] { check_stdio(stdio, {true, false, true}); }).status == 77);
    CHECK(failure_of([&] { check_stdio(stdio, {true, true, true}); }).status == 0);
}

TEST_CASE("a descriptor that is not open is a failure, not a pass")
{
    std::array<UniqueFd, 3> stdio{open_path("/dev/null"), open_path("/dev/null"), UniqueFd()};
    CHECK(failure_of([&] { check_stdio(stdio, {}); }).status == 71);
}

TEST_CASE("an anonymous pipe can be opened by name for what it is passed for, and nothing else gets another mode")
{
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const auto mode = [](int fd) {
        struct stat facts {};
        REQUIRE(::fstat(fd, &facts) == 0);
        return facts.st_mode & 0777U;
    };
    std::array<UniqueFd, 3> stdio;
    stdio[1] = UniqueFd::adopt(ends[1]);
    const UniqueFd reading = UniqueFd::adopt(ends[0]);
    let_pipes_be_opened(stdio);
    CHECK(mode(reading.get()) == 0602);
    stdio[1].reset();
    stdio[0] = UniqueFd::adopt(::dup(reading.get()));
    let_pipes_be_opened(stdio);
    CHECK(mode(reading.get()) == 0606);

    const TemporaryDirectory directory;
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    stdio[0] = UniqueFd::adopt(::open((directory / "fifo").c_str(), O_RDWR | O_CLOEXEC));
    stdio[1] = UniqueFd::adopt(::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    let_pipes_be_opened(stdio);
    CHECK(mode(stdio[0].get()) == 0600);
    CHECK(mode(stdio[1].get()) == 0600);
}

} // namespace stdio_rules_test
