// The process that stays when a runner is killed.
#include "runner/root/method/session_keeper.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/exec_pointers.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/root/confined/scratch_removal.hpp"
#include "runner/root/door/own_group.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_record.hpp"
#include "runner/wire/patience.hpp"

#include <array>
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
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("making a pipe");
    const UniqueFd theirs = UniqueFd::adopt(ends[0]);
    UniqueFd own = UniqueFd::adopt(ends[1]);
    const std::vector<std::string> arguments = {build::cleanup_path, "--when-runner-ends", session_id};
    const std::vector<char *> pointers = exec_pointers(arguments);
    const pid_t pid = fork();
    if (pid < 0) throw_errno("starting the session's keeper");
    if (pid == 0) become_keeper(pointers, theirs.get());
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) throw Failure(ExitStatus::system_failure, "the session's keeper could not be started");
    return own;
}

void keep_session(const AsRoot &root, const std::string &session_id)
{
    step_aside();
    char told = 0;
    ssize_t length = 0;
    do {
        length = read(STDIN_FILENO, &told, 1);
    } while (length < 0 && errno == EINTR);
    if (length == 1 || !defence_is_on("session-keeper")) return;
    // What ran inside has been killed by the kernel, or is being.
    fault_point("keeper-cleans");
    end_agents(session_id, in_seconds(cleanup_group_seconds));
    if (!record_end_of_killed(root, session_id, in_seconds(cleanup_record_seconds)))
        throw Failure(ExitStatus::system_failure, "its runner was killed and still holds its record; the next sweep removes what is left");
    remove_session_with_scratch(root, session_id, cleanup_removal_seconds);
    leave_group(session_id);
    record_problem(session_id, "its runner was killed; what the session left was removed");
}

} // namespace pi_agent
