// What a caller can choose for a program run by sudo, taken back: runner/root/door/admission.hpp
#include "runner/root/door/admission.hpp"

#include "common/base/channel.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace process_state_test {

namespace {

std::string first_word_of(const char *path)
{
    std::ifstream file(path);
    std::string word;
    file >> word;
    return word;
}

std::string open_numbers()
{
    std::string list;
    for (int fd = 0; fd < 256; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) list += std::to_string(fd) + " ";
    return list;
}

bool is_null(int fd)
{
    struct stat own {};
    struct stat null {};
    return ::fstat(fd, &own) == 0 && ::stat("/dev/null", &null) == 0 && S_ISCHR(own.st_mode) && own.st_rdev == null.st_rdev;
}

// take_channel() with `closed` closed and a socket on standard input; what is open afterwards.
std::string after_take_channel(const std::vector<int> &closed, int extra)
{
    return in_child([&] {
        const AsRoot root = AsRoot::claim();
        auto ends = make_channel();
        ::dup2(ends.second.get(), STDIN_FILENO);
        static_cast<void>(ends.second.release());
        for (int count = 0; count < extra; ++count)
            static_cast<void>(UniqueFd::adopt(::dup(STDERR_FILENO)).release()); // inherited, not close-on-exec
        // A process of its own, since the pipe for the test's answer is among what take_channel closes.
        const pid_t runner = ::fork();
        if (runner == 0) {
            std::string text;
            for (const int fd : closed)
                ::close(fd);
            try {
                const UniqueFd channel = take_channel(root);
                for (const int fd : {0, 1, 2})
                    text += is_null(fd) ? "null " : "other ";
                text += "open " + open_numbers() + "channel " + std::to_string(channel.get());
                if ((::fcntl(channel.get(), F_GETFD) & FD_CLOEXEC) == 0) text += " inherited";
                send_packet(channel, text, {}, in_seconds(5));
            } catch (const std::exception &) {
                ::_exit(1);
            }
            ::_exit(0);
        }
        const auto packet = receive_packet(ends.first, in_seconds(10));
        int status = 0;
        ::waitpid(runner, &status, 0);
        return packet ? packet->bytes : text_of_end(status);
    });
}

// False, with a word about it, where this place lacks the privilege to raise its limits to those of PID 1: a test machine, not a host.
bool limits_can_be_reset()
{
    const std::string problem = in_child([]() -> std::string {
        for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
            rlimit limit{};
            const auto kind = static_cast<__rlimit_resource>(resource);
            if (::prlimit(1, kind, nullptr, &limit) != 0 || ::setrlimit(kind, &limit) != 0) return "limit " + std::to_string(resource);
        }
        return "";
    });
    if (!problem.empty()) skipped("PID 1's limits cannot be taken here: " + problem);
    return problem.empty();
}

// Everything that a caller can choose for this process, chosen badly.
void spoil_process_state()
{
    ::signal(SIGCHLD, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGTERM, [](int) {});
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    const itimerval timer{{}, {3600, 0}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
    ::setitimer(ITIMER_PROF, &timer, nullptr);
    for (const auto kind : {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE}) {
        rlimit limit{};
        ::getrlimit(kind, &limit);
        limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 50);
        ::setrlimit(kind, &limit);
    }
    ::setpriority(PRIO_PROCESS, 0, 15);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    std::ofstream("/proc/self/oom_score_adj") << "777";
    ::umask(0);
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    ::setpgid(0, 0); // a group leader cannot simply call setsid
}

std::string what_is_wrong_with_process_state()
{
    std::string wrong;
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action {};
        if (::sigaction(number, nullptr, &action) != 0) continue;
        if (action.sa_handler != (number == SIGPIPE ? SIG_IGN : SIG_DFL)) wrong += "signal " + std::to_string(number) + " ";
    }
    sigset_t blocked;
    ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
    if (::sigisemptyset(&blocked) != 1) wrong += "mask ";
    for (const auto kind : {ITIMER_REAL, ITIMER_PROF}) {
        itimerval left{};
        ::getitimer(kind, &left);
        if (left.it_value.tv_sec != 0) wrong += "timer ";
    }
    for (const auto kind : {RLIMIT_CPU, RLIMIT_FSIZE}) {
        rlimit own{};
        rlimit host{};
        ::getrlimit(kind, &own);
        ::prlimit(1, kind, nullptr, &host);
        if (own.rlim_cur != host.rlim_cur) wrong += "limit " + std::to_string(kind) + " ";
    }
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_cur != 0 || limit.rlim_max != 0) wrong += "core ";
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur <= 50 || limit.rlim_cur > 4096) wrong += "descriptors ";
    if (::getpriority(PRIO_PROCESS, 0) != 0) wrong += "nice ";
    cpu_set_t own;
    cpu_set_t host;
    ::sched_getaffinity(0, sizeof own, &own);
    ::sched_getaffinity(1, sizeof host, &host);
    if (CPU_EQUAL(&own, &host) == 0) wrong += "processors ";
    if (first_word_of("/proc/self/oom_score_adj") != "0") wrong += "oom ";
    if (::umask(0) != 077) wrong += "umask ";
    if (std::filesystem::current_path() != "/") wrong += "directory ";
    if (::prctl(PR_GET_DUMPABLE) != 0) wrong += "dumpable ";
    if (::prctl(PR_GET_KEEPCAPS) != 0) wrong += "keepcaps ";
    int death_signal = -1;
    ::prctl(PR_GET_PDEATHSIG, &death_signal);
    if (death_signal != 0) wrong += "pdeathsig ";
    if (::getsid(0) != ::getpid()) wrong += "session ";
    return "wrong: " + wrong;
}

std::string state_after_reset()
{
    const AsRoot root = AsRoot::claim();
    spoil_process_state();
    reset_process_state(root);
    return what_is_wrong_with_process_state();
}

} // namespace

TEST_CASE("the one variable is taken, and the environment is empty afterwards")
{
    const auto taken = [](const char *sudo_uid) {
        return in_child([&] {
            ::clearenv();
            ::setenv("LD_PRELOAD", "/tmp/x.so", 1);
            ::setenv("SUDO_USER", "root", 1);
            ::setenv("SUDO_UIDX", "1", 1);
            if (sudo_uid != nullptr) ::setenv("SUDO_UID", sudo_uid, 1);
            const auto value = take_sudo_uid();
            const bool empty = environ == nullptr || *environ == nullptr;
            return value.value_or("none") + (empty ? "" : " and more");
        });
    };
    CHECK(taken("1000") == "1000");
    CHECK(taken("") == "");
    CHECK(taken("-1\n") == "-1\n");
    CHECK(taken(nullptr) == "none");
}

TEST_CASE("the socket stays, the standard descriptors become /dev/null, all others are closed" * doctest::skip(not_root()))
{
    const std::string expected = "null null null open 0 1 2 3 channel 3";
    CHECK(after_take_channel({}, 0) == expected);
    CHECK(after_take_channel({}, 50) == expected);
    CHECK(after_take_channel({1}, 0) == expected);
    CHECK(after_take_channel({2}, 3) == expected);
    CHECK(after_take_channel({1, 2}, 0) == expected);
    CHECK(after_take_channel({1, 2, 3, 4, 5}, 0) == expected);
}

TEST_CASE("without a standard input there is no channel" * doctest::skip(not_root()))
{
    CHECK(in_child([] {
              const AsRoot root = AsRoot::claim();
              ::close(STDIN_FILENO);
              return std::to_string(failure_of([&] { return take_channel(root); }).status);
          }) == "77");
}

TEST_CASE("the host's own namespaces are recognised, and others refused by name" * doctest::skip(not_root()))
{
    const auto answer = [](int flags) {
        return in_child([flags]() -> std::string {
            const AsRoot root = AsRoot::claim();
            if (flags != 0 && ::unshare(flags) != 0) return "not possible here";
            if (flags != CLONE_NEWPID) return failure_of([&] { require_host_namespaces(root); }).text;
            // The caller's own pid namespace stays; its children are in the new one.
            return in_child([&] { return failure_of([&] { require_host_namespaces(root); }).text; });
        });
    };
    if (const std::string here = answer(0); !here.empty()) {
        skipped("this test cannot see that it is in PID 1's namespaces itself: " + here);
        return;
    }
    struct Row {
        std::string name;
        int flag;
    };
    constexpr int clone_new_time = 0x80; // of children: <sched.h> of Debian 12 lacks it
    for (const Row &row : {Row{"mnt", CLONE_NEWNS},
                           {"pid", CLONE_NEWPID},
                           {"user", CLONE_NEWUSER},
                           {"cgroup", CLONE_NEWCGROUP},
                           {"net", CLONE_NEWNET},
                           {"ipc", CLONE_NEWIPC},
                           {"uts", CLONE_NEWUTS},
                           {"time", clone_new_time}}) {
        const std::string text = answer(row.flag);
        if (text == "not possible here") {
            skipped("this place makes no namespace of kind " + row.name);
            continue;
        }
        // Out of another user namespace the host's are not even to be seen, and that refuses as well.
        const bool unseen = row.flag == CLONE_NEWUSER && has(text, "denied: the host's mnt namespace cannot be seen from here");
        CHECK_MESSAGE((unseen || has(text, std::string("denied: called from another ") + row.name + " namespace")), text);
    }
}

TEST_CASE("everything that the caller chose for the process is taken back" * doctest::skip(not_root()))
{
    if (!limits_can_be_reset()) return;
    const std::string after = in_child([] { // a session that this test knows, as a caller's shell would have made one
        ::setsid();
        return in_child(state_after_reset);
    });
    CHECK(after == "wrong: ");
}

TEST_CASE("a leader of a session with a terminal gives it up and is not ended by that" * doctest::skip(not_root()))
{
    if (!limits_can_be_reset()) return;
    const std::string after = in_child([]() -> std::string {
        const AsRoot root = AsRoot::claim();
        if (::setsid() < 0) return "set-up failed";
        const UniqueFd master = UniqueFd::adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
        if (!master || ::unlockpt(master.get()) != 0) return "no terminals here";
        const UniqueFd slave = UniqueFd::adopt(::open(::ptsname(master.get()), O_RDWR | O_CLOEXEC)); // becomes the controlling one
        const UniqueFd before = UniqueFd::adopt(::open("/dev/tty", O_RDONLY | O_CLOEXEC));
        if (!slave || !before) return "no terminals here";
        reset_process_state(root);
        const UniqueFd after_reset = UniqueFd::adopt(::open("/dev/tty", O_RDONLY | O_CLOEXEC));
        return after_reset ? "still has it" : "given up";
    });
    if (after == "no terminals here")
        skipped("this place has no pseudo terminals");
    else
        CHECK(after == "given up");
}

TEST_CASE("securebits that a caller set are refused" * doctest::skip(not_root()))
{
    if (!limits_can_be_reset()) return;
    constexpr unsigned long no_setuid_fixup = 1UL << 2U; // becoming a user would keep every capability
    CHECK(in_child([]() -> std::string {
              const AsRoot root = AsRoot::claim();
              if (::prctl(PR_SET_SECUREBITS, no_setuid_fixup, 0, 0, 0) != 0) return "set-up failed";
              return failure_of([&] { reset_process_state(root); }).text;
          }) == "denied: called with securebits set; run pi from an ordinary shell of this host");
}

} // namespace process_state_test
