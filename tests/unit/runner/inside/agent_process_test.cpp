// Entering the working directory, starting the agent and ending as it did: runner/inside/agent_process.hpp
#include "runner/inside/agent_process.hpp"

#include "common/base/request.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <termios.h>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace agent_process_test {

namespace {

struct Project {
    TemporaryDirectory directory;

    [[nodiscard]] LaunchRecord record(const std::string &below) const
    {
        LaunchRecord record;
        record.project = directory.path();
        record.below = below;
        const UniqueFd place = UniqueFd::adopt(::open((directory / below).c_str(), O_PATH | O_CLOEXEC));
        record.cwd_inode = place ? inode_of(place) : 1;
        return record;
    }
};

// Where a process is after entering, or why it did not.
std::string entered(const LaunchRecord &record)
{
    return in_child([&]() -> std::string {
        const Caught caught = failure_of([&] {
            enter_working_directory(record);
            return 0;
        });
        return caught.status == 0 ? std::filesystem::current_path().string() : std::to_string(caught.status) + " " + caught.text;
    });
}

ReceivedLaunch launch_of(const std::string &script)
{
    ReceivedLaunch launch;
    launch.record.binary = "/bin/sh";
    launch.record.arguments = {"agent", "-c", script};
    launch.stdio = {open_path("/dev/null"), open_path("/dev/null"), open_path("/dev/null")};
    return launch;
}

// As pi-agent-exec does before it starts anything.
void block_child_signal()
{
    sigset_t child_only;
    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child_only, nullptr);
}

// What a shell script prints as the agent, then how it ended.
std::string run_agent(
    const std::string &script, unsigned mask = 022, const std::function<void()> &spoil = [] {})
{
    return in_child([&]() -> std::string {
        const TemporaryDirectory directory;
        ReceivedLaunch launch = launch_of(script);
        for (const char *argument : {"zero", "two words", ""})
            launch.record.arguments.emplace_back(argument);
        launch.record.environment = {"ONLY=this one"};
        launch.record.umask = mask;
        directory.write("in", "from standard input\n");
        launch.stdio = {open_path(directory / "in"), open_path(directory / "out", O_RDWR | O_CREAT),
                        open_path(directory / "error", O_RDWR | O_CREAT)};
        block_child_signal();
        spoil();
        auto ends = make_channel();
        const ExecEnded ended = wait_for_agent(start_agent(launch), ends.first);
        std::ifstream out(directory / "out");
        const std::string said((std::istreambuf_iterator<char>(out)), std::istreambuf_iterator<char>());
        return said + (ended.by_signal ? "signal " : "exit ") + std::to_string(ended.value);
    });
}

} // namespace

TEST_CASE("the working directory is entered beneath the project, whatever its names hold")
{
    const Project project;
    for (const std::string below : {"", "a", "a/b c/\n\x1b", "...", "a/..b"}) {
        CAPTURE(below);
        project.directory.make(below);
        const std::string expected = below.empty() ? project.directory.path() : project.directory / below;
        CHECK(entered(project.record(below)) == expected);
    }
}

TEST_CASE("no link and no way up is followed to it")
{
    const Project project;
    project.directory.make("a/b");
    project.directory.link("link", "a");
    for (const std::string below : {"link", "link/b"}) {
        CAPTURE(below);
        CHECK(has(entered(project.record(below)), "opening the working directory " + below));
    }
    for (const std::string below : {"..", "a/..", "a/../a"}) {
        CAPTURE(below);
        CHECK(has(entered(project.record(below)), "has .. in it"));
    }
    LaunchRecord linked = project.record("a");
    linked.project = project.directory / "link";
    linked.below = "b";
    CHECK(has(entered(linked), "opening the project"));
}

TEST_CASE("a working directory that is gone, a file, or another one is refused")
{
    const Project project;
    project.directory.make("here");
    project.directory.make("other");
    project.directory.write("file", "");
    CHECK(has(entered(project.record("gone")), "opening the working directory gone"));
    CHECK(has(entered(project.record("file")), "Not a directory"));
    LaunchRecord exchanged = project.record("here");
    exchanged.cwd_inode = project.record("other").cwd_inode;
    CHECK(entered(exchanged).substr(0, 3) == "77 ");
    CHECK(has(entered(exchanged), "was replaced while the session was being prepared"));
}

TEST_CASE("no agent starts where what was to be mounted is not")
{
    const Project project;
    LaunchRecord record = project.record("");
    const auto refused = [&record] { return failure_of([&] { return require_mount_points(record), 0; }); };
    record.mount_points = {"/proc", "/"};
    require_mount_points(record);
    record.mount_points = {"/proc", "/proc/self"};
    CHECK(refused().status == 69);
    CHECK(has(refused().text, "what was mounted at /proc/self did not reach the session"));
    record.mount_points = {project.directory / "gone"};
    CHECK(has(refused().text, "No such file"));
}

TEST_CASE("the agent gets its arguments, environment, standard input and umask, and nothing else")
{
    CHECK(run_agent(R"(printf '%s|' "$0" "$@")") == "zero|two words||exit 0");
    CHECK(run_agent("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=") == "ONLY=this one\nexit 0");
    CHECK(run_agent("cat") == "from standard input\nexit 0");
    CHECK(run_agent("umask") == "0022\nexit 0");
    CHECK(run_agent("umask", 027) == "0027\nexit 0");
}

// What the shell looks at with its own built-ins: another program would have descriptors and signals of its own.
TEST_CASE("no descriptor but the three is open in it, even one that was not marked")
{
    const std::string count = "fd=0; while [ $fd -lt 200 ]; do [ -e /proc/$$/fd/$fd ] && echo $fd; fd=$((fd + 1)); done; true";
    CHECK(run_agent(count, 022, [] { REQUIRE(::dup2(0, 77) == 77); }) == "0\n1\n2\nexit 0");
}

TEST_CASE("no signal is blocked or ignored in it")
{
    const std::string look = "while read -r name value; do case $name in SigBlk: | SigIgn:) echo $value;; esac; done </proc/$$/status";
    CHECK(run_agent(look, 022, [] {
              sigset_t all;
              sigfillset(&all);
              ::sigprocmask(SIG_SETMASK, &all, nullptr);
              ::signal(SIGPIPE, SIG_IGN);
              ::signal(SIGINT, SIG_IGN);
          }) == "0000000000000000\n0000000000000000\nexit 0");
}

TEST_CASE("a standard descriptor may itself be one of the three numbers")
{
    CHECK(in_child([]() -> std::string {
              const TemporaryDirectory directory;
              ReceivedLaunch launch;
              launch.record.binary = "/bin/sh";
              launch.record.arguments = {"agent", "-c", "echo out; echo error >&2"};
              const UniqueFd out = open_path(directory / "out", O_RDWR | O_CREAT);
              const UniqueFd error = open_path(directory / "error", O_RDWR | O_CREAT);
              // Input is 2, output 0, errors 1.
              if (::dup2(out.get(), 0) != 0 || ::dup2(error.get(), 1) != 1) return "set-up failed";
              launch.stdio = {UniqueFd::adopt(2), UniqueFd::adopt(0), UniqueFd::adopt(1)};
              const pid_t agent = start_agent(launch);
              int status = 0;
              ::waitpid(agent, &status, 0);
              std::string first;
              std::string second;
              std::getline(std::ifstream(directory / "out"), first);
              std::getline(std::ifstream(directory / "error"), second);
              return first + " " + second + " " + std::to_string(status);
          }) == "out error 0");
}

TEST_CASE("how the agent ended is told, and others that end are not taken for it")
{
    CHECK(run_agent("exit 42") == "exit 42");
    CHECK(run_agent("kill -SEGV $$") == "signal 11");
    CHECK(run_agent("(exit 3) & wait; sleep 0.1; exit 5") == "exit 5");
}

TEST_CASE("a signal that the runner sends reaches the agent, and a runner that is gone ends the waiting")
{
    const auto ended_after = [](const std::function<void(std::pair<UniqueFd, UniqueFd> &)> &act) {
        return in_child([&]() -> std::string {
            const ReceivedLaunch launch = launch_of("sleep 0.5; exit 9");
            block_child_signal();
            auto ends = make_channel();
            const pid_t agent = start_agent(launch);
            act(ends);
            const ExecEnded ended = wait_for_agent(agent, ends.first);
            return (ended.by_signal ? "signal " : "exit ") + std::to_string(ended.value);
        });
    };
    CHECK(ended_after([](auto &) {}) == "exit 9");
    CHECK(ended_after([](auto &ends) { send_packet(ends.second, encode(WrapperMessage(ForwardSignal{SIGTERM})), {}, in_seconds(1)); }) ==
          "signal 15");
    CHECK(ended_after([](auto &ends) { ends.second.reset(); }) == "threw: the runner ended");
}

TEST_CASE("a signal that asks for the end is answered, whatever the agent does with it")
{
    CHECK(in_child([]() -> std::string {
              const ReceivedLaunch launch = launch_of("trap 'exit 5' USR2; trap '' TERM; kill -STOP $$; while :; do sleep 0.01; done");
              block_child_signal();
              auto [own, theirs] = make_channel();
              std::string heard;
              std::thread runner([&heard, channel = FdRef(theirs)] {
                  const auto hear = [&] { return decode_exec_message(receive_packet(channel, in_seconds(10)).value().bytes); };
                  if (!std::holds_alternative<ExecStopped>(hear())) heard += "no stop, ";
                  send_packet(channel, encode(WrapperMessage(ForwardSignal{SIGTERM})), {}, in_seconds(1));
                  if (std::holds_alternative<SignalHeard>(hear())) heard += "answered, ";
                  send_packet(channel, encode(WrapperMessage(ForwardSignal{SIGUSR2})), {}, in_seconds(1));
              });
              const ExecEnded ended = wait_for_agent(start_agent(launch), own);
              runner.join();
              return heard + (ended.by_signal ? "signal " : "exit ") + std::to_string(ended.value);
          }) == "answered, exit 5");
}

TEST_CASE("an agent that stops is told, and goes on when it is continued")
{
    CHECK(in_child([]() -> std::string {
              const ReceivedLaunch launch = launch_of("kill -STOP $$; exit 4");
              block_child_signal();
              auto [own, theirs] = make_channel();
              std::string heard = "nothing";
              std::thread runner([&heard, channel = FdRef(theirs)] {
                  const auto packet = receive_packet(channel, in_seconds(10));
                  if (packet) heard = "stopped by " + std::to_string(std::get<ExecStopped>(decode_exec_message(packet->bytes)).number);
                  send_packet(channel, encode(WrapperMessage(ContinueAgent{})), {}, in_seconds(1));
              });
              const ExecEnded ended = wait_for_agent(start_agent(launch), own);
              runner.join();
              return heard + (ended.by_signal ? ", signal " : ", exit ") + std::to_string(ended.value);
          }) == "stopped by " + std::to_string(SIGSTOP) + ", exit 4");
}

TEST_CASE("an agent that cannot be run is the configuration's mistake, with its path and the reason")
{
    const TemporaryDirectory directory;
    const std::string plain = directory.write("plain", "#!/bin/sh\n");
    struct Row {
        std::string binary;
        std::string reason;
    };
    const std::vector<Row> rows = {
        {directory / "absent", "No such file"}, {plain, "Permission denied"}, {directory.path(), "Permission denied"}};
    for (const auto &row : rows) {
        CAPTURE(row.binary);
        ReceivedLaunch launch;
        launch.record.binary = row.binary;
        launch.record.arguments = {"agent"};
        launch.stdio = {open_path("/dev/null"), open_path("/dev/null"), open_path("/dev/null")};
        const std::size_t before = count_open_descriptors();
        const Caught caught = failure_of([&] { return start_agent(launch); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, "the agent " + row.binary + " cannot be run: "));
        CHECK(has(caught.text, row.reason));
        CHECK(count_open_descriptors() == before);
    }
}

TEST_CASE("a connection comes as pipes, and who sends anything else sends no more")
{
    const TemporaryDirectory directory;
    const auto heard_of = [&directory](const char *what) {
        return in_child([&]() -> std::string {
            ::signal(SIGPIPE, SIG_IGN);
            const UniqueFd server = UniqueFd::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
            socklen_t length = sizeof address;
            auto *as_any = reinterpret_cast<sockaddr *>(&address); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
            if (::bind(server.get(), as_any, length) != 0 || ::listen(server.get(), 1) != 0) return "no server";
            if (::getsockname(server.get(), as_any, &length) != 0) return "no port";
            const std::uint64_t port = ::ntohs(address.sin_port);
            auto channel = make_channel();
            serve_ports(std::move(channel.second), {port});
            Pipe in = make_pipe();
            Pipe back = make_pipe();
            auto local = make_channel();
            const UniqueFd file = open_path(directory / "file", O_RDWR | O_CREAT);
            const int into = what == std::string("a socket") ? local.first.get()
                             : what == std::string("a file") ? file.get()
                                                             : back.writing.get();
            send_packet(channel.first, Encoder().number(port).bytes(), {in.reading.get(), into}, in_seconds(1));
            back.writing.reset();
            std::array<pollfd, 2> waits{{{server.get(), POLLIN, 0}, {channel.first.get(), POLLIN, 0}}};
            if (::poll(waits.data(), waits.size(), 20'000) <= 0) return "nothing";
            return waits[0].revents != 0 ? "a connection" : "the end";
        });
    };
    CHECK(heard_of("pipes") == "a connection");
    CHECK(heard_of("a socket") == "the end");
    CHECK(heard_of("a file") == "the end");
}

TEST_CASE("this process ends as the agent did")
{
    const auto end_of = [](bool by_signal, int value) {
        return in_child([=]() -> std::string {
            ::signal(SIGTERM, SIG_IGN);
            sigset_t all;
            sigfillset(&all);
            ::sigprocmask(SIG_SETMASK, &all, nullptr);
            end_like(ExecEnded{by_signal, value});
        });
    };
    CHECK(end_of(false, 0) == "exited with 0");
    CHECK(end_of(false, 255) == "exited with 255");
    for (const int number : {SIGTERM, SIGKILL, SIGSEGV, SIGUSR1})
        CHECK(end_of(true, number) == "died of signal " + std::to_string(number));
    CHECK(end_of(true, SIGCHLD) == "exited with " + std::to_string(128 + SIGCHLD)); // one that ends nobody
}

TEST_CASE("a launcher that leads no session, as the first process of a PID namespace, leads one with the agent's terminal")
{
    const std::string found = in_child([]() -> std::string {
        const UniqueFd master = UniqueFd::adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
        if (!master || ::unlockpt(master.get()) != 0) return "no terminal here";
        ReceivedLaunch launch;
        launch.terminal = open_path(::ptsname(master.get()), O_RDWR | O_NOCTTY);
        if (::getsid(0) == ::getpid()) return "it leads one before";
        ::signal(SIGHUP, SIG_IGN); // of the terminal that ends with this scope
        take_terminal(launch);
        return ::getsid(0) == ::getpid() && ::tcgetsid(launch.terminal.get()) == ::getpid() ? "leads" : "does not lead";
    });
    CHECK(found == "leads");
}

TEST_CASE("a key that interrupts is the agent's while the launcher is still in the foreground of the terminal")
{
    const std::string ended = in_child([]() -> std::string {
        const UniqueFd master = UniqueFd::adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
        if (!master || ::unlockpt(master.get()) != 0) return "no terminal here";
        ReceivedLaunch launch = launch_of("trap 'exit 7' INT; echo ready; sleep 5 & wait; exit 1");
        const std::string path = ::ptsname(master.get());
        launch.terminal = open_path(path, O_RDWR | O_NOCTTY);
        launch.stdio[1] = open_path(path, O_RDWR | O_NOCTTY);
        sigset_t all;
        sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr); // as pi-agent-exec does
        take_terminal(launch);
        auto ends = make_channel();
        const pid_t agent = start_agent(launch);
        std::string seen(16, '\0');
        if (::read(master.get(), seen.data(), seen.size()) <= 0 || ::write(master.get(), "\003", 1) != 1)
            return "the terminal does not work";
        const ExecEnded seen_end = wait_for_agent(agent, ends.first);
        return (seen_end.by_signal ? "signal " : "exit ") + std::to_string(seen_end.value);
    });
    CHECK(ended == "exit 7");
}

} // namespace agent_process_test
