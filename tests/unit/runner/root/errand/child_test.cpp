// Children under another identity, with their deadlines: runner/root/errand/errand.hpp
#include "runner/root/confined/session_end.hpp"
#include "runner/root/errand/errand.hpp"

#include "runner/wire/answer.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/device.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"

#include <csignal>
#include <cstring>
#include <future>
#include <linux/fuse.h>
#include <sched.h>
#include <stdexcept>
#include <sys/mount.h>
#include <sys/resource.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace child_test {

namespace {

using Task = std::function<void(const AsUser &, FdRef)>;

// What the parent hears when `task` runs.
Caught failure_of_task(const Task &task)
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "helper", user_account(), {}, task);
    return failure_of([&] { return child.receive(); });
}

bool is_gone_soon(pid_t pid)
{
    const Deadline deadline = in_seconds(10);
    while (::kill(pid, 0) == 0) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

// A user's own file system can let its requests lie: a process that waits for one is deaf to signals.
UniqueFd mount_silent_file_system(const std::string &point)
{
    UniqueFd server = open_device(S_IFCHR, 10, 229, O_RDWR); // /dev/fuse, which a build root does not have
    const std::string options = "fd=" + std::to_string(server.get()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    if (!server || ::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("silent", point.c_str(), "fuse", 0, options.c_str()) != 0)
        return UniqueFd();
    // It says hello and nothing more.
    std::array<char, FUSE_MIN_READ_BUFFER> buffer{};
    fuse_in_header request{};
    if (::read(server.get(), buffer.data(), buffer.size()) < static_cast<ssize_t>(sizeof request)) return UniqueFd();
    std::memcpy(&request, buffer.data(), sizeof request);
    fuse_init_out hello{};
    hello.major = FUSE_KERNEL_VERSION;
    hello.minor = 31;
    hello.max_write = 4096;
    const fuse_out_header header{sizeof(fuse_out_header) + sizeof hello, 0, request.unique};
    std::array<char, sizeof header + sizeof hello> reply{};
    std::memcpy(reply.data(), &header, sizeof header);
    std::memcpy(reply.data() + sizeof header, &hello, sizeof hello);
    if (::write(server.get(), reply.data(), reply.size()) != static_cast<ssize_t>(reply.size())) return UniqueFd();
    return server;
}

std::string destroy_child_stuck_in(const std::string &point)
{
    const UniqueFd server = mount_silent_file_system(point);
    if (!server) return "not possible here";
    const AsRoot root = AsRoot::claim();
    Deadline start;
    pid_t pid = -1;
    {
        Child stuck(root, "stuck one", user_account(), {}, [&](const AsUser &, FdRef channel) {
            send_answer(channel, std::to_string(::getpid()));
            ::access((point + "/file").c_str(), F_OK);
        });
        pid = std::stoi(stuck.receive().bytes);
        std::array<char, FUSE_MIN_READ_BUFFER> buffer{};
        if (::read(server.get(), buffer.data(), buffer.size()) <= 0) return "no request came"; // taken, never answered
        start = Clock::now();
    }
    const bool in_time = Clock::now() - start < std::chrono::seconds(4);
    return std::string(::kill(pid, 0) == 0 ? "stuck, " : "ended, ") + (in_time ? "given up in time" : "waited for");
}

struct Pipe {
    Pipe()
    {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        reading = UniqueFd::adopt(ends[0]);
        writing = UniqueFd::adopt(ends[1]);
    }
    UniqueFd reading;
    UniqueFd writing;
};

// Leaves a process behind that is nobody's child and nobody's group's, as a program may whose user traces it, and waits. The answer is its
// number. All that is left of it for others is its end of a pipe.
void leave_a_process_and_wait(FdRef channel)
{
    if (::fork() == 0) {
        ::setsid();
        if (::fork() != 0) ::_exit(0);
        send_answer(channel, std::to_string(::getpid()));
        for (;;)
            ::pause();
    }
    ::wait(nullptr);
    for (;;)
        ::pause();
}

std::string own_descriptors()
{
    std::string list;
    for (int fd = 0; fd < 1024; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) list += std::to_string(fd) + " ";
    return list;
}

} // namespace

TEST_CASE("answers arrive in order, with their descriptors" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
        send_answer(channel, "");
        send_progress(channel);
        const UniqueFd null = UniqueFd::adopt(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        send_answer(channel, std::string("A\0F", 3), {null.get()});
    });
    CHECK(child.receive().bytes.empty());
    const Packet second = child.receive();
    CHECK(second.bytes == std::string("A\0F", 3));
    REQUIRE(second.fds.size() == 1);
    CHECK(inode_of(second.fds[0]) == inode_of(open_path("/dev/null")));
}

TEST_CASE("progress alone is no answer" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
        send_progress(channel);
        send_answer(channel, "x");
    });
    CHECK_FALSE(child.receive_one());
    CHECK(child.receive_one()->bytes == "x");
}

TEST_CASE("the task runs as the account, with its groups, and cannot come back" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    const Account account = user_account();
    Child child(root, "helper", account, {}, [](const AsUser &user, FdRef channel) {
        std::vector<gid_t> groups(64);
        const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
        const bool back = ::setuid(0) == 0 || ::setresuid(0, 0, 0) == 0 || ::setgid(0) == 0;
        Encoder encoder;
        encoder.number(user.uid().value()).number(::getuid()).number(::geteuid()).number(::getgid()).number(::getegid());
        encoder.number(static_cast<std::uint64_t>(count)).number(back ? 1 : 0);
        encoder.number(static_cast<std::uint64_t>(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
        encoder.number(static_cast<std::uint64_t>(::prctl(PR_GET_DUMPABLE)));
        send_answer(channel, encoder.bytes());
    });
    const Packet packet = child.receive();
    Decoder decoder(packet.bytes);
    CHECK(decoder.number() == account.uid.value());
    CHECK(decoder.number() == account.uid.value());
    CHECK(decoder.number() == account.uid.value());
    CHECK(decoder.number() == account.gid.value());
    CHECK(decoder.number() == account.gid.value());
    CHECK(decoder.number() == account.groups.size());
    CHECK(decoder.number() == 0);
    CHECK(decoder.number() == 1);
    CHECK(decoder.number() == 0);
    CHECK(::getuid() == 0);
}

TEST_CASE("what root may read, the task may not" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    const std::string secret = directory.write("secret", "x"); // in a directory that is root's, 0700
    CHECK(open_path(secret).is_open());
    const Caught caught = failure_of_task([&](const AsUser &, FdRef) {
        if (::open(secret.c_str(), O_RDONLY) >= 0) throw Failure(ExitStatus::internal, "it could be read");
        throw_errno("reading the secret");
    });
    CHECK(caught.status == 71);
    CHECK(caught.text == "reading the secret: Permission denied");
}

TEST_CASE("the child holds standard descriptors, what it is to keep, and its channel" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    const UniqueFd secret = open_path("/etc/shadow");
    const UniqueFd kept = open_path("/dev/null");
    const UniqueFd another_secret = open_path("/etc/shadow");
    const UniqueFd inherited = UniqueFd::adopt(::dup(secret.get())); // not close-on-exec
    Child child(root, "helper", user_account(), {kept.get(), 1, kept.get()},
                [&](const AsUser &, FdRef channel) { send_answer(channel, own_descriptors() + "| " + std::to_string(channel.get())); });
    const std::string text = child.receive().bytes;
    const std::string channel = text.substr(text.find("| ") + 2);
    std::string expected = "0 1 2 ";
    for (const int fd : {std::min(kept.get(), std::stoi(channel)), std::max(kept.get(), std::stoi(channel))})
        expected += std::to_string(fd) + " ";
    CHECK(text == expected + "| " + channel);
}

TEST_CASE("what the task throws reaches the parent" * doctest::skip(not_root()))
{
    struct Row {
        Task task;
        int status;
        std::string text;
    };
    const std::vector<Row> rows = {
        {[](const AsUser &, FdRef) { throw Failure(ExitStatus::denied, "no\n\xff"); }, 77, "no\n\xff"},
        {[](const AsUser &, FdRef) { throw Failure(ExitStatus::limit, ""); }, 75, ""},
        {[](const AsUser &, FdRef) {
             throw PolicyError({Diagnostic{Position{"p.yaml", 3, 1}, "users", "bad", "mend it"}});
         },
         78, "p.yaml:3:1: users: bad; mend it"},
        {[](const AsUser &, FdRef) { throw std::runtime_error("surprise"); }, 70, "surprise"},
        {[](const AsUser &, FdRef) { throw 7; }, 70, "unknown error"},
        {[](const AsUser &, FdRef) { throw Failure(ExitStatus::denied, std::string(100'000, 'x')); }, 77,
         std::string(packet_limit / 2, 'x')},
    };
    for (const auto &row : rows) {
        const Caught caught = failure_of_task(row.task);
        CHECK(caught.status == row.status);
        CHECK((caught.text == row.text));
    }
}

TEST_CASE("an identity that cannot be taken is a failure, and the task never runs" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "helper", Account{"root", Uid(0), Gid(0), "/root", {}}, {},
                [](const AsUser &, FdRef channel) { send_answer(channel, "it ran"); });
    CHECK(failure_of([&] { return child.receive(); }).status == 70);
}

TEST_CASE("a child that dies without a word is a failure, not an answer" * doctest::skip(not_root()))
{
    for (const int way : {SIGKILL, SIGSEGV, 0}) {
        CAPTURE(way);
        const Caught caught = failure_of_task([way](const AsUser &, FdRef) {
            const rlimit none{0, 0};
            ::setrlimit(RLIMIT_CORE, &none);
            if (way == 0) ::_exit(0);
            ::signal(way, SIG_DFL);
            ::raise(way);
        });
        CHECK(caught.status == 71);
        CHECK(caught.text == "the helper was killed");
    }
}

TEST_CASE("a task that ends without an answer is a failure as well" * doctest::skip(not_root()))
{
    CHECK(failure_of_task([](const AsUser &, FdRef) {}).text == "the helper was killed");
}

TEST_CASE("a message that no task sends is refused" * doctest::skip(not_root()))
{
    CHECK(failure_of_task([](const AsUser &, FdRef channel) { send_packet(channel, "Xyz", {}, in_seconds(1)); }).status == 77);
    CHECK(failure_of_task([](const AsUser &, FdRef channel) { send_packet(channel, "F", {}, in_seconds(1)); }).status == 77);
}

TEST_CASE("a stuck child is given up after its patience, and one that makes progress is not" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    Child slow(root, "slow one", user_account(), {}, [](const AsUser &, FdRef channel) {
        for (int step = 0; step < 3; ++step) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            send_progress(channel);
        }
        send_answer(channel, "done");
    });
    auto answer = std::async(std::launch::async, [&] { return slow.receive().bytes; });
    pid_t pid = -1;
    {
        Child stuck(root, "stuck one", user_account(), {}, [](const AsUser &, FdRef channel) {
            send_answer(channel, Encoder().number(static_cast<std::uint64_t>(::getpid())).bytes());
            ::signal(SIGTERM, SIG_IGN);
            for (;;)
                ::pause();
        });
        pid = static_cast<pid_t>(Decoder(stuck.receive().bytes).number());
        const auto start = Clock::now();
        const Caught caught = failure_of([&] { return stuck.receive(); });
        const auto waited = Clock::now() - start;
        CHECK(caught.status == 71);
        CHECK(has(caught.text, "the stuck one made no progress for 5 seconds and was stopped"));
        CHECK(waited >= std::chrono::milliseconds(4900));
        CHECK(waited < std::chrono::seconds(20));
        CHECK(::kill(pid, 0) == 0);
    }
    CHECK(::kill(pid, 0) != 0); // killed and reaped with its object
    CHECK(answer.get() == "done");
}

TEST_CASE("a child that not even SIGKILL ends does not keep root" * doctest::skip(not_root()))
{
    const TemporaryDirectory directory;
    set_mode(directory.path(), 0755);
    const std::string answer = in_child([&] { return destroy_child_stuck_in(directory.path()); });
    if (answer == "not possible here")
        skipped("this place mounts no FUSE file system");
    else
        CHECK(answer == "stuck, given up in time");
}

TEST_CASE("a child does not outlive its parent, even when that one is killed" * doctest::skip(not_root()))
{
    const std::string pid = in_child([] {
        const AsRoot root = AsRoot::claim();
        // Never destroyed: this process ends as if it had been killed.
        auto *child = new Child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
            send_answer(channel, std::to_string(::getpid()));
            for (;;)
                ::pause();
        });
        return child->receive().bytes;
    });
    CHECK(is_gone_soon(std::stoi(pid)));
}

TEST_CASE("what a child starts ends with it where that is asked for, whoever ends it" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    const auto is_over = [](FdRef reading, int seconds) { return wait_for_input(reading, in_seconds(seconds)); }; // the end of the pipe
    const auto task = [](const AsUser &, FdRef channel) { leave_a_process_and_wait(channel); };
    {
        Pipe pipe;
        std::optional<Child> child(std::in_place, root, "helper", user_account(), std::vector<int>{pipe.writing.get()}, task,
                                   Descendants::end_with_it);
        pipe.writing.reset();
        static_cast<void>(child->receive());
        CHECK_FALSE(is_over(pipe.reading, 1));
        child.reset();
        CHECK(is_over(pipe.reading, 5));
    }
    {
        Pipe pipe;
        const std::string said = in_child([&] {
            // Never destroyed: this process ends as if it had been killed.
            auto *child = new Child(AsRoot::claim(), "helper", user_account(), {pipe.writing.get()}, task, Descendants::end_with_it);
            return child->receive().bytes;
        });
        pipe.writing.reset();
        CHECK(said == "3"); // in that namespace, after the child and the one that is gone
        CHECK(is_over(pipe.reading, 5));
    }
    {
        // Otherwise it does outlive the others.
        Pipe pipe;
        std::optional<Child> child(std::in_place, root, "helper", user_account(), std::vector<int>{pipe.writing.get()}, task);
        pipe.writing.reset();
        const pid_t left = std::stoi(child->receive().bytes);
        child.reset();
        CHECK_FALSE(is_over(pipe.reading, 1));
        CHECK(::kill(left, SIGKILL) == 0);
        CHECK(is_over(pipe.reading, 5));
    }
}

TEST_CASE("a child whose parent is busy elsewhere waits for it, and a parent is told that it waits" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    const std::string much(1'000'000, 'x'); // more than a socket holds
    Child child(root, "helper", user_account(), {}, [&](const AsUser &, FdRef channel) {
        send_long_answer(channel, much);
        std::this_thread::sleep_for(std::chrono::milliseconds(800));
        send_long_answer(channel, "more");
    });
    std::this_thread::sleep_for(std::chrono::seconds(child_patience_seconds + 1));
    CHECK((child.receive_long(child_patience_seconds) == much));
    int waits = 0;
    CHECK(child.receive_long(child_patience_seconds, [&] { ++waits; }) == "more");
    CHECK(waits >= 1);
}

TEST_CASE("a child's processor time is bounded" * doctest::skip(not_root()))
{
    const AsRoot root = AsRoot::claim();
    Child child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
        rlimit limit{};
        ::getrlimit(RLIMIT_CPU, &limit);
        send_answer(channel, std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max));
    });
    CHECK(child.receive().bytes == "300 300"); // as long as a config sync may take
}

TEST_CASE("a child may do less where the host allows less, though its parent may raise no limit any more" * doctest::skip(not_root()))
{
    const std::string said = in_child([] {
        const rlimit less{30, 30};
        ::setrlimit(RLIMIT_CPU, &less);
        const AsRoot root = AsRoot::claim();
        confine_root(root);
        Child child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
            rlimit limit{};
            ::getrlimit(RLIMIT_CPU, &limit);
            send_answer(channel, std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max));
        });
        return child.receive().bytes;
    });
    CHECK(said == "30 30");
}

TEST_CASE("a child that ends by itself is waited for as long as it takes, with a descriptor or without" * doctest::skip(not_root()))
{
    for (const bool has_descriptor : {true, false}) {
        CAPTURE(has_descriptor);
        const std::string said = in_child([&] {
            const AsRoot root = AsRoot::claim();
            Child child(root, "helper", user_account(), {}, [](const AsUser &, FdRef channel) {
                send_answer(channel, std::to_string(::getpid()));
                receive_packet(channel, in_seconds(10)); // until it is hung up
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            });
            const pid_t pid = std::stoi(child.receive().bytes);
            const rlimit none{0, 0};
            if (!has_descriptor) ::setrlimit(RLIMIT_NOFILE, &none);
            const auto start = Clock::now();
            child.hang_up();
            const auto waited = Clock::now() - start;
            return std::string(::kill(pid, 0) == 0 ? "there, " : "gone, ") +
                   (waited >= std::chrono::milliseconds(100) && waited < std::chrono::milliseconds(1500) ? "waited for" : "not waited for");
        });
        CHECK(said == "gone, waited for");
    }
}

} // namespace child_test
