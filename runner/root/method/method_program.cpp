// The programs that a method runs as root: whether they exist, and starting bwrap and its keeper.
#include "runner/root/method/method_program.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/plan/limits.hpp"
#include "runner/root/method/engine_arguments.hpp"
#include "runner/root/method/own_group.hpp"

#include <csignal>
#include <cstdlib>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace pi_agent {

std::vector<MethodProgram> programs_of(SandboxMethod method)
{
    switch (method) {
    case SandboxMethod::bwrap:
        return {{build::bwrap_path, "bubblewrap"}, {build::setpriv_path, "util-linux"}};
    case SandboxMethod::podman:
        return {{build::podman_path, "podman"}, {build::crun_path, "crun"}, {build::conmon_path, "conmon"}};
    case SandboxMethod::docker:
        return {{build::docker_path, "docker.io"}};
    case SandboxMethod::systemd:
    case SandboxMethod::none:
        break;
    }
    return {};
}

std::optional<std::string> problem_of_program(SandboxMethod method, const MethodProgram &program)
{
    try {
        open_trusted(program.path, O_PATH, "program");
        return std::nullopt;
    } catch (const SystemFailure &failure) {
        return std::string(to_string(method)) + " needs " + program.path + ", and " + failure.what() + "; install the package " +
               program.package + ", or choose another method";
    }
}

void require_method_programs(SandboxMethod method)
{
    for (const auto &program : programs_of(method))
        if (const auto problem = problem_of_program(method, program))
            throw Failure(FailureKind::sandbox_method, "sandbox.method " + *problem);
}

namespace {

constexpr int arguments_fd = 3; // inside bwrap
constexpr int info_fd = 4;
constexpr int group_fd = 5; // until bwrap has entered it
char *const no_environment[] = {nullptr};

// Raises it to the agent's, unless the runner's is as high: in a container that the kernel kills before others, nobody may lower it.
bool raise_oom_score()
{
    const UniqueFd file = UniqueFd::adopt(open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
    std::array<char, 16> own{};
    if (!file || read(file.get(), own.data(), own.size() - 1) <= 0) return false;
    if (std::strtol(own.data(), nullptr, 10) >= agent_oom_score) return true;
    const std::string score = std::to_string(agent_oom_score);
    return pwrite(file.get(), score.data(), score.size(), 0) == static_cast<ssize_t>(score.size());
}

// Runs in the forked child: closes all but what bwrap needs, and drops what it would inherit from the caller.
[[noreturn]] void become_bwrap(pid_t parent, const std::vector<int> &descriptors, bool in_group, const std::vector<char *> &arguments)
{
    const auto fail = [](const char *step) {
        const std::string text = std::string(step) + ": " + SystemFailure(errno, "bwrap").what() + "\n";
        static_cast<void>(write(STDERR_FILENO, text.data(), text.size()) > 0);
        _exit(static_cast<int>(ExitStatus::unavailable));
    };
    if (!place_descriptors(descriptors)) _exit(static_cast<int>(ExitStatus::system_failure));
    if (in_group && enter_group(FdRef(group_fd)) != 0) fail("entering the agent's control group");
    if (close_range(group_fd, ~0U, 0) != 0) fail("closing descriptors");
    if (defence_is_on("bwrap:die-with-parent") && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("asking for the parent-death signal");
    if (getppid() != parent) _exit(static_cast<int>(ExitStatus::system_failure));
    if (!raise_oom_score()) fail("setting oom_score_adj");
    // The caller's session keyring came along through sudo (session-keyring(7)).
    errno = defence_is_on("bwrap:own-keyring") ? leave_session_keyring() : 0;
    if (errno != 0) fail("taking a keyring of its own");
    signal(SIGPIPE, SIG_DFL);
    if (!unblock_signals()) fail("unblocking signals");
    execve(build::bwrap_path, arguments.data(), no_environment);
    fail("running bwrap");
    _exit(static_cast<int>(ExitStatus::unavailable));
}

// Forks twice, so that nobody has to wait for it. Also closes the session's lock, which must end with the runner.
[[noreturn]] void become_keeper(const std::vector<char *> &arguments, int end_of_runner)
{
    if (dup2(end_of_runner, STDIN_FILENO) < 0 || close_range(3, ~0U, 0) != 0) _exit(1);
    const pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? 1 : 0);
    setsid();
    unblock_signals();
    execve(build::cleanup_path, arguments.data(), no_environment);
    _exit(1);
}

} // namespace

pid_t run_bwrap(const AsRoot &root, const SandboxPlan &plan, FdRef group, const BwrapDescriptors &descriptors)
{
    require_bwrap_network(root, plan.network);
    const UniqueFd arguments_file = write_arguments("bwrap", bwrap_options(plan, info_fd)); // every user could read its argv
    std::vector<std::string> arguments = {"bwrap", "--args", std::to_string(arguments_fd), "--"};
    const std::vector<std::string> command = bwrap_command(plan);
    arguments.insert(arguments.end(), command.begin(), command.end());
    const std::vector<char *> pointers = exec_pointers(arguments);
    const UniqueFd null = open_or_throw("opening /dev/null", "/dev/null", O_RDWR);
    std::vector<int> fds = {descriptors.launcher.get(), null.get(), descriptors.complaint.get(), arguments_file.get(),
                            descriptors.info.get()};
    const bool in_group = group.get() >= 0;
    if (in_group) fds.push_back(group.get());
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw_errno("starting bwrap");
    if (pid == 0) become_bwrap(parent, fds, in_group, pointers);
    return pid;
}

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
    return std::move(own); // cppcheck-suppress returnStdMoveLocal ; it is a part of a pipe
}

} // namespace pi_agent
