// Starting the process that stays when a runner is killed.
#include "runner/root/method/session_keeper.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/process.hpp"

#include <csignal>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace pi_agent {

namespace {

// Twice forked, so that nobody has to wait for it. The session's lock is among what is closed: it must end with the runner.
[[noreturn]] void become_keeper(const std::vector<char *> &arguments, int end_of_runner)
{
    if (dup2(end_of_runner, STDIN_FILENO) < 0 || close_range(3, ~0U, 0) != 0) _exit(1);
    const pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? 1 : 0);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    char *const no_environment[] = {nullptr};
    execve(build::cleanup_path, arguments.data(), no_environment);
    _exit(1);
}

} // namespace

UniqueFd start_session_keeper(const AsRoot & /*root*/, const std::string &session_id)
{
    auto [theirs, own] = make_pipe();
    const std::vector<std::string> arguments = {build::cleanup_path, "--when-runner-ends", session_id};
    const std::vector<char *> pointers = exec_pointers(arguments);
    const pid_t pid = fork();
    if (pid < 0) throw_errno("starting the session's keeper");
    if (pid == 0) become_keeper(pointers, theirs.get());
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) throw Failure(ExitStatus::system_failure, "the session's keeper could not be started");
    return std::move(own);
}

} // namespace pi_agent
