// One shell script, with a deadline.
#include "runner/as_agent/hook_process.hpp"

#include "common/base/files.hpp"

#include <array>
#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr std::size_t output_limit = 1024;
constexpr auto tick_interval = std::chrono::milliseconds(100);
constexpr auto look_interval = std::chrono::milliseconds(20);
constexpr int end_patience_seconds = 2;

// Runs in the forked child, and throws nothing.
[[noreturn]] void become_script(pid_t parent, const HookCall &call, FdRef output, char *const *arguments, char *const *environment)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool ready = setsid() >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent &&
                       fchdir(call.directory.get()) == 0 && place_descriptors({null, output.get(), output.get()}) &&
                       close_range(3, ~0U, 0) == 0;
    if (!ready) _exit(126);
    restore_signals();
    umask(077);
    execve("/bin/sh", arguments, environment);
    _exit(127);
}

// Kills what the script started, however this ends. A process that outlived its parent becomes our child.
struct Leftovers {
    Leftovers() = default;
    Leftovers(const Leftovers &) = delete;
    Leftovers &operator=(const Leftovers &) = delete;
    ~Leftovers();
};

Leftovers::~Leftovers()
{
    const std::string list = "/proc/self/task/" + std::to_string(gettid()) + "/children";
    const Deadline deadline = in_seconds(end_patience_seconds);
    for (;;) {
        pid_t reaped = 0;
        do {
            reaped = waitpid(-1, nullptr, WNOHANG);
        } while (reaped > 0);
        if (reaped < 0 || Clock::now() >= deadline) return;
        std::ifstream children(list);
        for (pid_t child = 0; children >> child;)
            kill(child, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// Takes what has been written so far and keeps the end of it.
void take_output(FdRef from, std::string &kept)
{
    std::array<char, 4096> piece{};
    for (int turns = 0; turns < 64; ++turns) { // a flood does not keep us from the deadline
        const ssize_t count = read(from.get(), piece.data(), piece.size());
        if (count <= 0) return;
        kept.append(piece.data(), static_cast<std::size_t>(count));
        if (kept.size() > output_limit) kept.erase(0, kept.size() - output_limit);
    }
}

} // namespace

HookEnd run_hook(const AsUser & /*self*/, const HookCall &call, Deadline deadline, const std::function<void()> &tick)
{
    // When our parent dies, this process hears of it at the next tick, and still has something to kill.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0)
        throw_errno("adopting what a migration hook leaves");
    auto [output, theirs] = make_pipe(O_NONBLOCK);
    const std::vector<std::string> arguments = {"sh", call.script};
    const std::vector<char *> argument_pointers = exec_pointers(arguments);
    const std::vector<char *> environment_pointers = exec_pointers(call.environment);
    const pid_t parent = getpid();
    const Leftovers leftovers;
    const pid_t script = fork();
    if (script < 0) throw_errno("starting a migration hook");
    if (script == 0) become_script(parent, call, theirs, argument_pointers.data(), environment_pointers.data());
    theirs.reset();

    HookEnd end;
    for (Deadline next_tick = Clock::now(); !end.in_time && Clock::now() < deadline;) {
        end.in_time = waitpid(script, &end.status, WNOHANG) == script;
        take_output(output, end.output);
        if (Clock::now() >= next_tick) {
            tick();
            next_tick = Clock::now() + tick_interval;
        }
        if (!end.in_time) std::this_thread::sleep_for(look_interval);
    }
    return end;
}

} // namespace pi_agent
