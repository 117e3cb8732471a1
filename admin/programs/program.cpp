// Starts programs of the system, and what becomes a user, in a unit where there is systemd.
#include "admin/programs/program.hpp"

#include "common/base/files.hpp"

#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

namespace pi_agent {

namespace {

constexpr const char *program_too_late = "a program did not end in time";
constexpr std::uint64_t microseconds_a_second = 1'000'000;
constexpr int stop_patience_seconds = 3; // a second more than systemd takes to stop it
constexpr auto between_looks = std::chrono::milliseconds(200);
constexpr int margin_seconds = 5; // for the caller, who waits; the unit's own end is for when the caller was killed

constexpr std::array<const char *, 5> program_directories = {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/", "/run/current-system/sw/bin/"};
constexpr const char *program_path_variable = "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

// Empty if it is not installed.
std::string look_for_program(const std::string &name)
{
    for (const auto *directory : program_directories) {
        if (auto path = directory + name; ::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
}

// Takes what is there, at most as much as a pipe holds, because the other end may write faster than this reads. Keeps a MiB. At the end of
// the output it closes `end`.
void take_output(UniqueFd &end, std::string &text)
{
    constexpr int at_once = 256;
    constexpr std::size_t limit = std::size_t{1} << 20U;
    std::array<char, 4096> chunk{};
    for (int count = 0; end && count < at_once; ++count) {
        const auto size = ::read(end.get(), chunk.data(), chunk.size());
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < 0) throw_errno("cannot read the output of a program");
        if (size == 0) end.reset();
        if (text.size() < limit) text.append(chunk.data(), static_cast<std::size_t>(size));
    }
}

// "NAME=value": the same for every program.
std::vector<std::string> program_variables()
{
    return {program_path_variable, "LC_ALL=C"};
}

// A command as it is logged: everything that could deceive a reader is escaped.
std::string shown_command(const std::vector<std::string> &words)
{
    return escape_for_display(fmt::format("{}", fmt::join(words, " ")));
}

// --- Starts visudo, systemd-sysusers, and, where there is no systemd, what becomes a user.

constexpr int kill_patience_seconds = 1;

// Keys that interrupt reach the whole foreground of a terminal: they are for the program that runs there, as in system(3).
class IgnoredInterrupts {
public:
    IgnoredInterrupts() : interrupt_(std::signal(SIGINT, SIG_IGN)), quit_(std::signal(SIGQUIT, SIG_IGN)) {}
    ~IgnoredInterrupts()
    {
        std::signal(SIGINT, interrupt_);
        std::signal(SIGQUIT, quit_);
    }
    IgnoredInterrupts(const IgnoredInterrupts &) = delete;
    IgnoredInterrupts &operator=(const IgnoredInterrupts &) = delete;

private:
    void (*interrupt_)(int);
    void (*quit_)(int);
};

// What a program begins with: descriptors, session, signals (posix_spawn(3)).
class Beginning {
public:
    Beginning()
    {
        check(::posix_spawn_file_actions_init(&actions_));
        check(::posix_spawnattr_init(&attributes_));
    }
    ~Beginning()
    {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&actions_);
    }
    Beginning(const Beginning &) = delete;
    Beginning &operator=(const Beginning &) = delete;

    void give(FdRef fd, int number) { check(::posix_spawn_file_actions_adddup2(&actions_, fd.get(), number)); }
    // Nothing else that this process has open, and another working directory: a user could look from there.
    void leave_the_rest()
    {
        check(::posix_spawn_file_actions_addchdir_np(&actions_, "/"));
        check(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1));
    }
    void lead_session() { check(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID)); }
    // For a program that must be interrupted by what this process ignores.
    void hear(const IgnoredInterrupts & /*ignored*/)
    {
        sigset_t defaults;
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGINT);
        sigaddset(&defaults, SIGQUIT);
        check(::posix_spawnattr_setsigdefault(&attributes_, &defaults));
        check(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF));
    }

    [[nodiscard]] pid_t spawn(const std::vector<std::string> &arguments, const std::vector<std::string> &variables) const
    {
        const auto path = arguments.front().front() == '/' ? arguments.front() : require_program(arguments.front());
        const std::vector<char *> argv = exec_pointers(arguments);
        const std::vector<char *> environment = exec_pointers(variables);
        pid_t pid = -1;
        const int error = ::posix_spawn(&pid, path.c_str(), &actions_, &attributes_, argv.data(), environment.data());
        if (error != 0) throw SystemFailure(error, "cannot start " + path);
        spdlog::debug("process {} runs {}", pid, shown_command(arguments));
        return pid;
    }

private:
    static void check(int error)
    {
        if (error != 0) throw SystemFailure(error, "cannot prepare a program");
    }
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

// Throws Failure(unavailable) at the deadline.
int wait_for(pid_t pid, Deadline deadline)
{
    const auto process = open_process(pid);
    if (!process) throw_errno("cannot wait for a program");
    if (!wait_for_input(process, deadline)) throw Failure(ExitStatus::unavailable, program_too_late);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) throw_errno("cannot wait for a program");
    }
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    spdlog::debug("process {} ended with status {}", pid, result);
    return result;
}

ProgramResult run(const std::vector<std::string> &arguments, std::string_view input, bool own_session, Deadline deadline)
{
    const auto standard_input = in_memory_input(input);
    auto [output, their_end] = make_pipe(O_NONBLOCK, "cannot make a pipe");
    Beginning beginning;
    beginning.give(standard_input, STDIN_FILENO);
    beginning.give(their_end, STDOUT_FILENO);
    beginning.give(their_end, STDERR_FILENO);
    if (own_session && defence_is_on("canary-apart")) beginning.leave_the_rest();
    if (own_session) beginning.lead_session();
    const auto pid = beginning.spawn(arguments, program_variables());
    their_end.reset(); // otherwise the end would never be seen
    try {
        std::string text;
        while (output) {
            // A program that writes without end is always ready.
            if (!wait_for_input(output, deadline) || Clock::now() >= deadline) throw Failure(ExitStatus::unavailable, program_too_late);
            take_output(output, text);
        }
        return {wait_for(pid, deadline), std::move(text)};
    } catch (const Failure &) {
        ::kill(own_session ? -pid : pid, SIGKILL);
        try {
            wait_for(pid, in_seconds(kill_patience_seconds));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): it waits for a file system of the user's, and dies when that answers
        }
        throw;
    }
}

// Where there is no systemd: a control group for one program that root starts for a user. Made and removed by who starts the program.
// Nothing is made where the hierarchy of version 2 cannot be written.
class ProgramGroup {
public:
    explicit ProgramGroup(const AsRoot & /*root*/)
    {
        if (!defence_is_on("program-group") || !make_own_groups()) return;
        for (const auto &name : groups_in(own_groups)) { // those whose maker was killed
            if (!name.starts_with(prefix)) continue;
            const auto maker = static_cast<pid_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10));
            if (maker == getpid() || (kill(maker, 0) != 0 && errno == ESRCH)) end(std::string(own_groups) + "/" + name);
        }
        path_ = std::string(own_groups) + "/" + std::string(prefix) + std::to_string(getpid());
        const bool is_made = mkdir(path_.c_str(), 0755) == 0 || errno == EEXIST;
        if (!is_made || access(entrance().c_str(), W_OK) != 0) path_.clear();
    }
    ProgramGroup(const ProgramGroup &) = delete;
    ProgramGroup &operator=(const ProgramGroup &) = delete;
    ~ProgramGroup()
    {
        if (!path_.empty()) end(path_);
    }

    // Its `cgroup.procs`, for the program to enter it by; empty where the group could not be made.
    [[nodiscard]] std::string entrance() const { return path_.empty() ? "" : path_ + "/cgroup.procs"; }

private:
    // Ends what is left in it. best_effort: the next such group ends what does not end in a second.
    static void end(const std::string &path) noexcept
    {
        try {
            empty_group({path, true}, in_seconds(1));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort
        }
        rmdir(path.c_str());
    }

    static constexpr std::string_view prefix = "program-"; // and the number of the process that made it
    std::string path_;
};

} // namespace

UnitProgram::UnitProgram(const AsRoot &root, const std::string &unit, const std::vector<UnitProperty> &properties, std::string_view input)
    : unit_(unit), systemd_(root)
{
    const auto text = in_memory_input(input);
    auto [ours, theirs] = make_pipe(O_NONBLOCK, "cannot make a pipe");
    systemd_.watch_service(unit);
    systemd_.start_program(unit, properties, {text, theirs, theirs});
    pipe_ = std::move(ours);
}

SandboxResult UnitProgram::wait(Deadline deadline, const std::function<void()> &meanwhile)
{
    for (;;) {
        systemd_.process();
        auto result = systemd_.service_result();
        take_output(pipe_, output);
        if (meanwhile) meanwhile();
        if (result.ended || Clock::now() >= deadline) return result;
        std::array<pollfd, 2> waits{pollfd{systemd_.fd().get(), POLLIN, 0}, pollfd{pipe_ ? pipe_.get() : -1, POLLIN, 0}};
        const auto next = systemd_.next_look(meanwhile ? std::min(deadline, Clock::now() + between_looks) : deadline);
        if (::poll(waits.data(), waits.size(), milliseconds_left(next)) < 0 && errno != EINTR) throw_errno("waiting for a program");
    }
}

bool has_systemd()
{
    return access("/run/systemd/system", F_OK) == 0;
}

std::string shell_script(const std::vector<std::string> &command, const std::vector<std::string> &variables)
{
    std::string script = "exec env -i";
    for (const auto *words : {&variables, &command})
        for (const auto &word : *words) {
            std::string text = "'";
            for (const char byte : word)
                text += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
            script += " " + text + "'";
        }
    return script + " </dev/null\n";
}

std::vector<UnitProperty> program_unit_properties(Uid user, int patience_seconds)
{
    return {
        {"Description", std::string("pi-agent-program")},
        {"Slice", "user-" + std::to_string(user.value()) + ".slice"}, // with the limits that this host sets its users
        {"CollectMode", std::string("inactive-or-failed")},
        {"AddRef", true}, // keeps the result readable until it is read
        {"Type", std::string("exec")},
        {"ExecStart", Command{{"/bin/sh"}}}, // its input says what to do: no byte of others' is in a property
        {"KillMode", std::string("control-group")},
        {"KillSignal", SignedNumber{SIGKILL}}, // also what the program has left
        {"SendSIGKILL", true},
        {"TimeoutStopUSec", (stop_patience_seconds - 1) * microseconds_a_second},
        {"RuntimeMaxUSec", static_cast<std::uint64_t>(patience_seconds + margin_seconds) * microseconds_a_second},
        {"KeyringMode", std::string("private")},
    };
}

ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds)
{
    require_program(command.front());
    if (!defence_is_on("canary-apart")) return run_program_apart(command, patience_seconds);
    if (has_systemd() && defence_is_on("program-unit")) {
        const std::string unit = "pi-agent-program-" + random_hex(8) + ".service";
        const auto deadline = in_seconds(patience_seconds);
        spdlog::debug("systemd runs {} in {}", shown_command(command), unit);
        UnitProgram program(root, unit, program_unit_properties(user, patience_seconds), shell_script(command, program_variables()));
        const auto result = program.wait(deadline);
        if (!result.ended) {
            program.stop();
            program.wait(in_seconds(stop_patience_seconds));
            throw Failure(ExitStatus::unavailable, program_too_late);
        }
        if (result.result == "timeout") throw Failure(ExitStatus::unavailable, program_too_late);
        if (result.code == 0)
            throw Failure(ExitStatus::unavailable,
                          "systemd could not start a program (" + result.result + "); find out why with: journalctl -u " + unit);
        const int status = result.code == CLD_EXITED ? result.status : 128 + result.status;
        spdlog::debug("{} ended with status {}", unit, status);
        return {status, std::move(program.output)};
    }
    const ProgramGroup group(root);
    if (group.entrance().empty()) return run_program_apart(command, patience_seconds);
    std::vector<std::string> entering = {"sh", "-c", "echo 0 >\"$0\" && exec \"$@\"", group.entrance()};
    entering.insert(entering.end(), command.begin(), command.end());
    return run_program_apart(entering, patience_seconds);
}

ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges)
{
    std::vector<std::string> command = {
        "setpriv",       "--reuid",    std::to_string(user.uid.value()), "--regid", std::to_string(user.gid.value()),
        "--init-groups", "--reset-env"};
    if (privileges == NewPrivileges::refused) command.emplace_back("--no-new-privs");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_confined_to_group(root, user.uid, command, patience_seconds);
}

UniqueFd in_memory_input(std::string_view text)
{
    auto fd = UniqueFd::adopt(::memfd_create("input", MFD_CLOEXEC));
    if (!fd) throw_errno("cannot make the input of a program");
    write_whole(fd, text, "the input of a program");
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno("cannot rewind the input of a program");
    return fd;
}

std::string path_of_input(FdRef input)
{
    return fmt::format("/proc/{}/fd/{}", ::getpid(), input.get());
}

std::string require_program(const std::string &name)
{
    if (auto path = look_for_program(name); !path.empty()) return path;
    throw Failure(ExitStatus::configuration,
                  "the program " + name + " is not installed, and pi-agent needs it; install the package that contains it");
}

bool has_program(const std::string &name)
{
    return !look_for_program(name).empty();
}

ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input)
{
    return run(arguments, input, false, Deadline::max());
}

std::string require_success(const std::vector<std::string> &arguments, const std::string &problem, std::string_view input,
                            ExitStatus status)
{
    auto result = run_program(arguments, input);
    if (result.status != 0) throw Failure(status, problem + ": " + one_line(result.output));
    return std::move(result.output);
}

ProgramResult run_diff_program(const std::string &old_text, const std::string &new_text, const std::vector<std::string> &options)
{
    const auto old_file = in_memory_input(old_text); // diff opens it again: it has one standard input
    std::vector<std::string> words = {"diff", "--text", "--unified"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {path_of_input(old_file), "-"});
    return run_program(words, new_text);
}

int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables, std::string *output)
{
    const IgnoredInterrupts ignored;
    std::vector<std::string> all = {program_path_variable};
    all.insert(all.end(), variables.begin(), variables.end());
    Beginning beginning;
    beginning.hear(ignored);
    auto [end, their_end] = make_pipe(O_NONBLOCK, "cannot make a pipe");
    if (output != nullptr) beginning.give(their_end, STDOUT_FILENO);
    const auto pid = beginning.spawn(arguments, all);
    their_end.reset();
    while (output != nullptr && end)
        if (wait_for_input(end, Deadline::max())) take_output(end, *output);
    return wait_for(pid, Deadline::max());
}

ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds)
{
    const bool apart = defence_is_on("canary-apart");
    // Root's own keyring must not reach a program that becomes a user.
    if (const int error = apart ? leave_session_keyring() : 0; error != 0) throw SystemFailure(error, "cannot take a new keyring");
    return run(arguments, {}, apart, in_seconds(patience_seconds));
}

} // namespace pi_agent
