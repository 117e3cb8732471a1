// Starting tar and npm, and waiting for them.
#include "fetch/programs.hpp"

#include "common/base/process.hpp"

#include <array>
#include <cstdlib>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr std::size_t kept_output = 4000;

class SpawnActions {
public:
    SpawnActions() { check(::posix_spawn_file_actions_init(&actions_)); }
    ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
    SpawnActions(const SpawnActions &) = delete;
    SpawnActions &operator=(const SpawnActions &) = delete;

    void begin_in(const std::string &directory) { check(::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str())); }
    void read_nothing() { check(::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0)); }
    void write_to(FdRef end)
    {
        for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
            check(::posix_spawn_file_actions_adddup2(&actions_, end.get(), stream));
    }
    [[nodiscard]] const posix_spawn_file_actions_t *get() const noexcept { return &actions_; }

private:
    static void check(int error)
    {
        if (error != 0) throw SystemFailure(error, "cannot prepare a program");
    }
    posix_spawn_file_actions_t actions_{};
};

void keep_output(FdRef end, std::string &text, bool &at_end)
{
    std::array<char, 4096> chunk{};
    const auto size = ::read(end.get(), chunk.data(), chunk.size());
    if (size < 0 && errno != EINTR) throw_errno("cannot read the output of a program");
    at_end = size == 0;
    if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > kept_output) text.erase(0, text.size() - kept_output);
}

} // namespace

bool is_heard()
{
    pollfd listener{STDOUT_FILENO, 0, 0};
    return ::poll(&listener, 1, 0) == 0;
}

ProgramOutcome run_fetch_program(const std::vector<std::string> &arguments, const std::vector<std::string> &variables,
                                 const std::string &directory)
{
    auto [output, their_end] = make_pipe();
    SpawnActions actions;
    actions.begin_in(directory);
    actions.read_nothing();
    actions.write_to(their_end);
    pid_t pid = -1;
    const auto argv = exec_pointers(arguments);
    const auto environment = exec_pointers(variables);
    const int error = ::posix_spawn(&pid, arguments.front().c_str(), actions.get(), nullptr, argv.data(), environment.data());
    if (error != 0) throw SystemFailure(error, "cannot start " + arguments.front());
    their_end.reset();
    ProgramOutcome outcome;
    for (bool at_end = false; !at_end;) {
        std::array<pollfd, 2> waits{pollfd{output.get(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
        if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) throw_errno("waiting for a program");
        if (waits[1].revents != 0) std::_Exit(EXIT_FAILURE); // systemd kills what is left in the unit
        if (waits[0].revents != 0) keep_output(output, outcome.output, at_end);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) throw_errno("waiting for a program");
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

} // namespace pi_agent
