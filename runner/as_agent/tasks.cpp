// What children of the agent's account do beside the config sync: they run migration hooks, and give directories the set-gid bit.
#include "runner/as_agent/home.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/filter/seccomp_filter.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

namespace pi_agent {

// --- Migration hooks: shell scripts, each with a deadline.

namespace {

constexpr std::size_t output_limit = 1024;
constexpr auto tick_interval = std::chrono::milliseconds(100);
constexpr auto look_interval = std::chrono::milliseconds(20);
constexpr int leftovers_patience_seconds = 2;

// A shell script to run as the account that this process has.
struct HookCall {
    std::string script;                   // absolute path, for /bin/sh
    std::vector<std::string> environment; // NAME=value, all that it gets
    FdRef directory;                      // where it runs
    int patience_seconds;
};

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
    const Deadline deadline = in_seconds(leftovers_patience_seconds);
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

struct HookEnd {
    bool in_time = false;
    int status = 0;     // as of waitpid(2); 0 is success
    std::string output; // the end of what it wrote to standard output and standard error
};

std::string failure_of(const HookEnd &end, int patience_seconds)
{
    std::string text = "did not end within " + std::to_string(patience_seconds) + " seconds";
    if (end.in_time && WIFSIGNALED(end.status)) text = "was ended by signal " + std::to_string(WTERMSIG(end.status));
    if (end.in_time && WIFEXITED(end.status)) text = "ended with status " + std::to_string(WEXITSTATUS(end.status));
    std::string said = end.output;
    while (!said.empty() && said.back() == '\n')
        said.pop_back();
    return said.empty() ? text : text + " (\"" + escape_for_display(said) + "\")";
}

// Standard input is empty. What the script started is killed when it ends, or after its patience. `tick` is called several times a second.
// An exception from it ends the script as well. Throws what `tick` throws, and what keeps the script from starting.
HookEnd run_script(const HookCall &call, const std::function<void()> &tick)
{
    // When our parent dies, this process hears of it at the next tick, and still has something to kill.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0)
        throw_errno("adopting what a migration hook leaves");
    auto [output, theirs] = make_pipe(O_NONBLOCK);
    const std::vector<std::string> arguments = {"sh", call.script};
    const std::vector<char *> argument_pointers = exec_pointers(arguments);
    const std::vector<char *> environment_pointers = exec_pointers(call.environment);
    const pid_t parent = getpid();
    const Deadline deadline = in_seconds(call.patience_seconds);
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

// Only root must be able to write it. The agent's account reads it by its name.
void require_trusted_script(const std::string &path)
{
    const UniqueFd script = open_trusted(path, O_RDONLY | O_NONBLOCK, "migration hook");
    if (!S_ISREG(examine(script, "examining " + escape_for_display(path)).st_mode))
        throw Failure(FailureKind::agent_home, "the migration hook " + escape_for_display(path) + " is not a regular file");
}

} // namespace

std::vector<std::string> select_migrations(const std::vector<std::string> &names, const Version &from, const Version &to)
{
    std::vector<std::pair<Version, std::string>> chosen;
    for (const auto &name : names) {
        const std::size_t dash = name.find('-');
        const std::optional<Version> version = parse_version(name.substr(0, std::min(dash, name.size())));
        if (dash == std::string::npos || !version)
            throw Failure(FailureKind::agent_home, "the migration hook " + escape_for_display(name) +
                                                       " is not named VERSION-name.sh, as in 1.2.0-move-cache.sh, so its version is "
                                                       "unknown; ask the administrator to rename it");
        if (from < *version && *version <= to) chosen.emplace_back(*version, name);
    }
    std::sort(chosen.begin(), chosen.end());
    return mapped(chosen, [](auto &versioned) { return std::move(versioned.second); });
}

void run_migrations(const AsUser & /*self*/, const MigrationPlan &plan, const Version &from, const HomeToMigrate &home, FdRef channel)
{
    for (const auto &name :
         select_migrations(list_trusted_directory(plan.directory, ".sh", "directory of migration hooks"), from, plan.version)) {
        const std::string path = plan.directory + "/" + name;
        require_trusted_script(path);
        const HookCall call{path,
                            {"HOME=" + home.path, "PATH=/usr/local/bin:/usr/bin:/bin", "PI_AGENT_OLD_VERSION=" + to_string(from),
                             "PI_AGENT_NEW_VERSION=" + to_string(plan.version)},
                            home.directory,
                            plan.patience_seconds};
        const HookEnd end =
            run_script(call, [&] { send_progress(channel, "bringing the agent's home up to date (" + escape_for_display(name) + ")"); });
        if (!end.in_time || end.status != 0)
            throw Failure(ExitStatus::system_failure,
                          "the migration hook " + escape_for_display(path) + ", which brings the agent's home from " + to_string(from) +
                              " to " + to_string(plan.version) + ", " + failure_of(end, plan.patience_seconds) +
                              "; it runs again at the next start: ask the administrator to repair what it reports");
    }
}

// --- Changes modes of directories for a session, from outside of its sandbox.

namespace {

// Takes a descriptor: a name can lead elsewhere between the look and the change, while a descriptor stays with its directory.
int change_mode(FdRef object, mode_t mode, bool directories_alone)
{
    struct stat facts {};
    if (fstat(object.get(), &facts) != 0) return errno;
    if (!S_ISDIR(facts.st_mode) && directories_alone) return EPERM;
    // By this name, because the descriptor may be one for the place alone (O_PATH), which fchmod(2) refuses.
    return chmod(("/proc/self/fd/" + std::to_string(object.get())).c_str(), mode) == 0 ? 0 : errno;
}

} // namespace

Account agent_with_groups_of(const Account &agent, const Account &user)
{
    Account both = agent;
    for (const gid_t group : user.groups)
        if (group != user.gid.value() && std::find(both.groups.begin(), both.groups.end(), group) == both.groups.end())
            both.groups.push_back(group);
    return both;
}

void serve_directory_modes(const AsUser & /*agent*/, FdRef channel)
{
    const bool directories_alone = defence_is_on("set-gid-directories-alone");
    install_mode_call_filter();
    while (const std::optional<Packet> asked = receive_packet(channel, Deadline::max())) {
        const auto request = decode_fields<ModeRequest>(asked->bytes);
        if (asked->fds.size() != 1) throw ProtocolError("a mode was asked for, and no directory came");
        send_packet(channel, encode(ModeAnswer{change_mode(asked->fds.front(), request.mode, directories_alone)}), {}, Deadline::max());
    }
}

} // namespace pi_agent
