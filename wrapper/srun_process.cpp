// Starting srun, and hearing what it says.
#include "common/decide/explained.hpp"
#include "wrapper/carrier.hpp"

#include "common/base/files.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

namespace pi_agent {

namespace {

constexpr std::size_t said_limit = 64UL * 1024;
constexpr int end_patience_seconds = 5;
constexpr int exec_failed = 127;

// Nothing else of the caller's shell leaves it: a job's variables are kept by others, and those of Slurm's that the caller has would change
// how the task's output comes, or put it into another job.
std::vector<std::string> environment_of_srun()
{
    std::vector<std::string> variables = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    for (const char *name : {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "KRB5CCNAME", "SLURM_CONF"})
        if (const char *value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
    return variables;
}

// However often they were escaped before.
std::string harmless_lines(std::string_view lines)
{
    std::string text;
    for (const auto line : split(lines, '\n'))
        text += (line.data() == lines.data() ? "" : "\n") + escape_for_display(without_escapes(line));
    return text;
}

} // namespace

std::string harmless_message(RunnerMessage message)
{
    const auto clean = [](auto &said) {
        if constexpr (requires { said.text; }) said.text = harmless_lines(said.text);
        if constexpr (requires { said.doing; }) said.doing = harmless_lines(said.doing);
    };
    std::visit(clean, message);
    return encode(message);
}

SrunProcess::SrunProcess(const JobCommand &command)
{
    if (access(command.program.c_str(), X_OK) != 0)
        throw Failure(FailureKind::no_node, std::string(SystemFailure(errno, "starting " + command.program).what()) +
                                                ": sessions run in jobs of the cluster, and this asks for one; ask the administrator to "
                                                "install Slurm's client on this host, or to correct placement.srun");
    std::vector<std::string> texts = {command.program};
    texts.insert(texts.end(), command.arguments.begin(), command.arguments.end());
    const std::vector<std::string> variables = environment_of_srun();
    const std::vector<char *> arguments = exec_pointers(texts);
    const std::vector<char *> environment = exec_pointers(variables);
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe error = make_pipe(O_NONBLOCK);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw_errno("starting srun");
    if (pid_ == 0) {
        const bool ready = place_descriptors({input.reading.get(), output.writing.get(), error.writing.get()}) && restore_signals() &&
                           prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0 && getppid() == parent;
        if (ready) execve(command.program.c_str(), arguments.data(), environment.data());
        dprintf(STDERR_FILENO, "%s: %s\n", command.program.c_str(), std::strerror(errno));
        _exit(exec_failed);
    }
    input_ = std::move(input.writing);
    output_ = std::move(output.reading);
    error_ = std::move(error.reading);
}

void SrunProcess::hear_error()
{
    std::array<char, 4096> buffer{};
    const ssize_t count = error_ ? read(error_.get(), buffer.data(), buffer.size()) : 0;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return error_.reset();
    if (said_.size() < said_limit) said_.append(buffer.data(), static_cast<std::size_t>(count));
}

void SrunProcess::cancel()
{
    const pid_t process = std::exchange(pid_, -1); // once: then its number may be another process's
    if (process < 0) return;
    kill(process, SIGTERM);
    const Deadline deadline = in_seconds(end_patience_seconds);
    while (waitpid(process, nullptr, WNOHANG) == 0) {
        if (Clock::now() >= deadline) kill(process, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

std::string SrunProcess::explain_end()
{
    std::string words;
    wait_for_end(in_seconds(end_patience_seconds), FdRef(-1));
    const std::string said = std::exchange(said_, {}); // once
    for (auto line : split(said, '\n')) {
        for (const std::string_view beginning : {"srun: ", "error: ", "fatal: "})
            if (line.starts_with(beginning)) line.remove_prefix(beginning.size());
        if (!line.empty()) words += (words.empty() ? ": " : " | ") + escape_for_display(line);
    }
    return words;
}

std::string SrunProcess::wait_for_end(Deadline deadline, FdRef impatience)
{
    while (error_ && Clock::now() < deadline) {
        std::array<pollfd, 2> waits = {pollfd{error_.get(), POLLIN, 0}, pollfd{impatience.get(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), milliseconds_left(deadline)) < 0 && errno != EINTR) break;
        if (waits[1].revents != 0) break;
        if (waits[0].revents != 0) hear_error();
    }
    return harmless_lines(said_);
}

} // namespace pi_agent
