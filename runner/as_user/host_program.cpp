// Starting a program of the host as a user and reading what it writes.
#include "runner/as_user/git_identity.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"

#include <csignal>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr std::array<const char *, 4> program_directories = {"/usr/local/bin/", "/usr/bin/", "/bin/", "/run/current-system/sw/bin/"};
constexpr const char *program_path = "PATH=/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";
constexpr int not_found_status = 127;
constexpr std::size_t complaint_limit = 500;

// Runs in the forked child, where nothing may be thrown.
[[noreturn]] void become_program(pid_t parent, const Pipe &output, const Pipe &complaint, const std::vector<std::string> &paths,
                                 const std::vector<int> &inputs, char *const *arguments, char *const *environment)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    std::vector<int> fds = {inputs.empty() ? nothing : inputs[0], output.writing.get(), complaint.writing.get()};
    if (inputs.size() > 1) fds.push_back(inputs[1]);
    // The process that waits for the program is killed at its own deadline, and takes the program with it.
    const int at_parents_death = defence_is_on("program-end") ? SIGKILL : 0;
    if (nothing < 0 || !place_descriptors(fds) || close_range(static_cast<unsigned>(fds.size()), ~0U, 0) != 0 || !unblock_signals() ||
        prctl(PR_SET_PDEATHSIG, at_parents_death, 0, 0, 0) != 0 || getppid() != parent || signal(SIGPIPE, SIG_DFL) == SIG_ERR)
        _exit(126);
    for (const auto &path : paths)
        execve(path.c_str(), arguments, environment);
    _exit(not_found_status);
}

// Takes what is there to read; closes `from` at its end.
void take(UniqueFd &from, std::string &into)
{
    std::array<char, 4096> chunk{};
    const ssize_t count = read(from.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) return;
    if (count < 0) throw_errno("reading what a program writes");
    if (count == 0) return from.reset();
    into.append(chunk.data(), static_cast<std::size_t>(count));
}

// False when the program must be killed: `result` says why.
bool read_all(Pipe &output, Pipe &complaint, std::size_t limit, Deadline deadline, ProgramOutput &result)
{
    while (output.reading || complaint.reading) {
        std::array<pollfd, 2> waits{pollfd{output.reading.get(), POLLIN, 0}, pollfd{complaint.reading.get(), POLLIN, 0}};
        const int ready = poll(waits.data(), waits.size(), milliseconds_left(deadline));
        if (ready < 0 && errno != EINTR) throw_errno("waiting for a program");
        if (Clock::now() >= deadline) {
            result.end = ProgramOutput::End::late;
            return false;
        }
        if (ready <= 0) continue;
        if (waits[0].revents != 0) take(output.reading, result.output);
        if (waits[1].revents != 0) take(complaint.reading, result.complaint);
        result.complaint.resize(std::min(result.complaint.size(), complaint_limit));
        if (result.output.size() <= limit) continue;
        result.output.resize(limit);
        result.end = ProgramOutput::End::too_long;
        return false;
    }
    return true;
}

} // namespace

ProgramOutput run_host_program(const AsUser & /*user*/, const std::vector<std::string> &command,
                               const std::vector<std::string> &environment, std::size_t limit, Deadline deadline,
                               const std::vector<int> &inputs)
{
    std::vector<std::string> paths;
    paths.reserve(program_directories.size());
    for (const char *directory : program_directories)
        paths.push_back(directory + command.front());
    std::vector<std::string> variables = environment;
    variables.emplace_back(program_path);
    const std::vector<char *> argument_pointers = exec_pointers(command);
    const std::vector<char *> variable_pointers = exec_pointers(variables);
    Pipe output = make_pipe();
    Pipe complaint = make_pipe();
    const pid_t parent = getpid();
    const pid_t program = fork();
    if (program < 0) throw_errno("starting " + command.front());
    if (program == 0) become_program(parent, output, complaint, paths, inputs, argument_pointers.data(), variable_pointers.data());
    output.writing.reset(); // or their end would never be seen
    complaint.writing.reset();

    ProgramOutput result;
    const bool complete = read_all(output, complaint, limit, deadline, result);
    if (!complete) kill(program, SIGKILL); // but does not wait for it: a file system that does not answer can hold it
    int status = 0;
    while (complete && waitpid(program, &status, 0) < 0)
        if (errno != EINTR) throw_errno("waiting for " + command.front());
    if (!complete || !WIFEXITED(status)) return result;
    result.status = WEXITSTATUS(status);
    result.end = result.status == not_found_status ? ProgramOutput::End::not_installed : ProgramOutput::End::exited;
    return result;
}

} // namespace pi_agent
