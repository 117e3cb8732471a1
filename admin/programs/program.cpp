// Starting visudo, systemd-sysusers, and what becomes a user where there is no systemd.
#include "admin/programs/program.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::array<const char *, 5> program_directories = {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/", "/run/current-system/sw/bin/"};
constexpr const char *program_path_variable = "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

// Empty when it is not installed.
std::string look_for_program(const std::string &name)
{
    for (const auto *directory : program_directories) {
        auto path = directory + name;
        if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
}

std::string find_program(const std::string &name)
{
    auto path = look_for_program(name);
    if (!path.empty()) return path;
    throw Failure(ExitStatus::configuration,
                  "the program " + name + " is not installed, and pi-agent needs it; install the package that brings it");
}

constexpr int kill_patience_seconds = 1;

class FileActions {
public:
    FileActions() { check(::posix_spawn_file_actions_init(&actions_)); }
    ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    FileActions(const FileActions &) = delete;
    FileActions &operator=(const FileActions &) = delete;

    void give(FdRef fd, int number) { check(::posix_spawn_file_actions_adddup2(&actions_, fd.get(), number)); }
    // Nothing else of what this process has open, and not where it stands: a user could look from there.
    void leave_the_rest()
    {
        check(::posix_spawn_file_actions_addchdir_np(&actions_, "/"));
        check(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1));
    }
    [[nodiscard]] const posix_spawn_file_actions_t *get() const noexcept { return &actions_; }

private:
    static void check(int error)
    {
        if (error != 0) throw SystemFailure(error, "cannot prepare a program");
    }
    posix_spawn_file_actions_t actions_{};
};

// The keys of a terminal that interrupt go to its whole foreground: they are for the program that runs there, as in system(3).
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
    IgnoredInterrupts(IgnoredInterrupts &&) = delete;
    IgnoredInterrupts &operator=(IgnoredInterrupts &&) = delete;

private:
    void (*interrupt_)(int);
    void (*quit_)(int);
};

class Attributes {
public:
    // For a program that is to hear what this process does not.
    explicit Attributes(const IgnoredInterrupts & /*ignored*/) : Attributes(false)
    {
        sigset_t defaults;
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGINT);
        sigaddset(&defaults, SIGQUIT);
        if (::posix_spawnattr_setsigdefault(&attributes_, &defaults) != 0 ||
            ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF) != 0)
            throw Failure(ExitStatus::system_failure, "cannot prepare a program");
    }
    explicit Attributes(bool own_session)
    {
        if (::posix_spawnattr_init(&attributes_) != 0 || (own_session && ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID) != 0))
            throw Failure(ExitStatus::system_failure, "cannot prepare a program");
    }
    ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
    Attributes(const Attributes &) = delete;
    Attributes &operator=(const Attributes &) = delete;
    Attributes(Attributes &&) = delete;
    Attributes &operator=(Attributes &&) = delete;
    [[nodiscard]] const posix_spawnattr_t *get() const noexcept { return &attributes_; }

private:
    posix_spawnattr_t attributes_{};
};

pid_t spawn(const std::vector<std::string> &arguments, const FileActions &actions, const Attributes &attributes,
            const std::vector<std::string> &variables)
{
    const auto path = arguments.front().front() == '/' ? arguments.front() : find_program(arguments.front());
    const std::vector<char *> argv = exec_pointers(arguments);
    const std::vector<char *> environment = exec_pointers(variables);
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, path.c_str(), actions.get(), attributes.get(), argv.data(), environment.data());
    if (error != 0) throw SystemFailure(error, "cannot start " + path);
    return pid;
}

pid_t start(const std::vector<std::string> &arguments, FdRef input, FdRef output, bool own_session)
{
    FileActions actions;
    actions.give(input, STDIN_FILENO);
    actions.give(output, STDOUT_FILENO);
    actions.give(output, STDERR_FILENO);
    if (own_session && defence_is_on("canary-apart")) actions.leave_the_rest();
    return spawn(arguments, actions, Attributes(own_session), program_variables());
}

// Throws Failure(unavailable) at the deadline.
std::string read_all(FdRef fd, Deadline deadline)
{
    std::string text;
    std::array<char, 4096> chunk{};
    for (;;) {
        // A program that writes without end is always ready.
        if (!wait_for_input(fd, deadline) || Clock::now() >= deadline) throw Failure(ExitStatus::unavailable, program_too_late);
        const auto count = ::read(fd.get(), chunk.data(), chunk.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read the output of a program");
        if (count == 0) return text;
        if (text.size() < program_output_limit) text.append(chunk.data(), static_cast<std::size_t>(count));
    }
}

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
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

UniqueFd in_memory_input(std::string_view text)
{
    auto fd = UniqueFd::adopt(::memfd_create("input", MFD_CLOEXEC));
    if (!fd) throw_errno("cannot make the input of a program");
    while (!text.empty()) {
        const auto count = ::write(fd.get(), text.data(), text.size());
        if (count < 0) throw_errno("cannot write the input of a program");
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno("cannot rewind the input of a program");
    return fd;
}

std::vector<std::string> program_variables()
{
    return {program_path_variable, "LC_ALL=C"};
}

void require_program(const std::string &name)
{
    static_cast<void>(find_program(name));
}

bool has_program(const std::string &name)
{
    return !look_for_program(name).empty();
}

std::string one_line(const std::string &output)
{
    std::string line;
    for (const char byte : output)
        line += byte == '\n' ? ' ' : byte;
    while (!line.empty() && line.back() == ' ')
        line.pop_back();
    return escape_for_display(line);
}

namespace {

ProgramResult run(const std::vector<std::string> &arguments, std::string_view input, bool own_session, Deadline deadline)
{
    const auto standard_input = in_memory_input(input);
    auto [output, their_end] = make_pipe(0, "cannot make a pipe");
    const auto pid = start(arguments, standard_input, their_end, own_session);
    their_end.reset(); // or its end would never be seen
    try {
        auto text = read_all(output, deadline);
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

} // namespace

ProgramResult run_program(const std::vector<std::string> &arguments, std::string_view input)
{
    return run(arguments, input, false, Deadline::max());
}

int run_at_terminal(const std::vector<std::string> &arguments, const std::vector<std::string> &variables)
{
    const IgnoredInterrupts ignored;
    std::vector<std::string> all = {program_path_variable};
    all.insert(all.end(), variables.begin(), variables.end());
    const auto pid = spawn(arguments, FileActions(), Attributes(ignored), all);
    return wait_for(pid, Deadline::max());
}

ProgramResult run_program_apart(const std::vector<std::string> &arguments, int patience_seconds)
{
    const bool apart = defence_is_on("canary-apart");
    // Root's own must not reach a program that becomes a user.
    const int error = apart ? leave_session_keyring() : 0;
    if (error != 0) throw SystemFailure(error, "cannot take a new keyring");
    return run(arguments, {}, apart, in_seconds(patience_seconds));
}

} // namespace pi_agent
