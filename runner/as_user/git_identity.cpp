// Asks the host's git what is in the user's files of settings, and in what they include.
#include "runner/as_user/git_identity.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_user/reader.hpp"

#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

namespace pi_agent {

// Asking the host's git about one file after the other, and following what they include.

namespace {

constexpr int include_depth = 10;                   // as git's own
constexpr std::size_t listing_limit = 256UL * 1024; // bytes of what git says of one file

// Git reads no more of the system than it must, asks nobody, and says what is wrong in words that do not depend on the user.
std::vector<std::string> environment_for(const std::string &home)
{
    return {"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"};
}

std::string problem_of(const ProgramOutput &answer, const std::string &file)
{
    const std::string place = escape_for_display(file);
    switch (answer.end) {
    case ProgramOutput::End::late:
        return "git did not read " + place + " within " + std::to_string(git_patience_seconds) +
               " seconds; is it, or what it includes, a pipe or on a file system that does not answer?";
    case ProgramOutput::End::too_long:
        return "the settings in " + place + " are longer than " + std::to_string(listing_limit) + " bytes";
    case ProgramOutput::End::killed:
        return "git was killed while it read " + place;
    case ProgramOutput::End::not_installed:
        return "";
    case ProgramOutput::End::exited:
        break;
    }
    // 1: nothing found, or a file that git may not read, which is only a warning to git.
    if (answer.status == 0 || (answer.status == 1 && answer.complaint.empty())) return "";
    return "git could not read " + place + ": " + one_line(answer.complaint);
}

UniqueFd file_with(const std::string &text)
{
    UniqueFd fd = UniqueFd::adopt(memfd_create("git's settings", MFD_CLOEXEC));
    if (!fd) throw_errno("making a file for git");
    write_whole(fd, text, "a file for git");
    if (lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno("making a file for git");
    return fd;
}

// The user's files of git's settings, and what they include. Git reads each file by itself, and follows no include. A file where agents
// write is handed to git open, so that it leads nowhere else (common/as_user/user_paths.hpp).
class GitFiles {
public:
    GitFiles(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline, std::vector<std::string> &notices)
        : user_(user), paths_(paths), home_(home), deadline_(deadline), notices_(notices)
    {
    }

    [[nodiscard]] std::vector<FoundGitSetting> take() { return std::move(settings_); }

    // `from`: the directory that `file` is relative to, where agents write; none where `file` is absolute.
    void read_into(const std::string &file, const UserPlacePtr &from, int depth)
    {
        UserPlacePtr place;
        try {
            place = from ? paths_.follow(from, file) : paths_.follow(file);
        } catch (const NotFollowed &refusal) {
            notices_.push_back(escape_for_display(file) + " is left out: " + refusal.what());
            return;
        } catch (const SystemFailure &failure) {
            if (failure.error_number() == ENOENT || failure.error_number() == ENOTDIR) return;
            if (from || failure.error_number() == ELOOP) { // git would refuse a loop of symlinks, too
                notices_.push_back(escape_for_display(file) + " is left out: " + failure.what());
                return;
            }
            if (failure.error_number() != EACCES) throw; // git would open it by its name, whatever an agent has put there meanwhile
        }
        HostFile opened;
        if (place && place->written_by != nullptr) {
            opened = open_host_file(*place);
            if (!opened.fd) return notices_.push_back(escape_for_display(place->path) + " is left out: " + opened.problem);
        }
        for (auto &[key, value] : ask(from ? place->path : file, opened.fd)) {
            const std::string condition(git_rule(key) == "includeif.path" ? git_subsection(key) : "");
            if (condition.empty() && key != "include.path") {
                settings_.push_back(
                    {{std::move(key), std::move(value)}, place ? place->path : file, place && place->written_by != nullptr});
                continue;
            }
            if (!value || value->empty() || depth >= include_depth) continue;
            if (condition.empty() || holds(condition, file)) include(file, place, *value, depth + 1);
        }
    }

private:
    std::vector<GitSetting> ask(const std::string &file, FdRef descriptor)
    {
        // The repository at hand matters only to conditions; its own problems must not be blamed on this file.
        std::vector<std::string> environment = environment_for(home_);
        environment.emplace_back("GIT_DIR=/nonexistent");
        const bool is_open = descriptor.get() >= 0;
        const ProgramOutput answer =
            run_host_program(user_, {"git", "config", "--file", is_open ? "-" : file, "--no-includes", "-z", "--get-regexp", "."},
                             environment, listing_limit, deadline_, is_open ? std::vector<int>{descriptor.get()} : std::vector<int>{});
        if (const std::string problem = problem_of(answer, file); !problem.empty()) throw Failure(FailureKind::user_configuration, problem);
        return read_git_settings(answer.output);
    }

    void include(const std::string &file, const UserPlacePtr &place, const std::string &path, int depth)
    {
        const std::string absolute = path_in_setting(path, home_);
        if (place && place->written_by != nullptr) { // it may have come from an agent
            if (absolute.front() == '/')
                notices_.push_back("in " + escape_for_display(place->path) + " the include of " + escape_for_display(path) +
                                   " is left out: an agent can have written it; name a file beside it by a relative path");
            else
                read_into(absolute, place->above, depth);
            return;
        }
        read_into(absolute.front() == '/' ? absolute : split_last(file).first + "/" + absolute, nullptr, depth);
    }

    bool holds(const std::string &condition, const std::string &file)
    {
        std::string text = condition;
        for (const std::string_view relative : {"gitdir:./", "gitdir/i:./"})
            if (text.starts_with(relative)) text.replace(relative.size() - 2, 1, split_last(file).first);
        std::string quoted;
        for (const char byte : text) {
            if (byte == '"' || byte == '\\') quoted += '\\';
            quoted += byte;
        }
        const UniqueFd question = file_with("[includeIf \"" + quoted + "\"]\n\tpath = /proc/self/fd/3\n");
        const UniqueFd included = file_with("[pi-agent]\n\tholds = yes\n");
        const ProgramOutput answer = run_host_program(user_, {"git", "config", "--file", "-", "--includes", "--get", "pi-agent.holds"},
                                                      environment_for(home_), listing_limit, deadline_, {question.get(), included.get()});
        if (answer.end == ProgramOutput::End::exited && answer.status <= 1 && answer.complaint.empty()) return answer.status == 0;
        const std::string why =
            answer.end == ProgramOutput::End::late ? "it did not answer in time; is its .git/config a pipe?" : one_line(answer.complaint);
        const std::string notice = "git cannot read the repository of the working directory (" + why + "), so includeIf in " +
                                   escape_for_display(file) + " is ignored; repair the repository";
        if (std::find(notices_.begin(), notices_.end(), notice) == notices_.end()) notices_.push_back(notice);
        return false;
    }

    const AsUser &user_;
    const UserPaths &paths_;
    const std::string &home_;
    Deadline deadline_;
    std::vector<FoundGitSetting> settings_;
    std::vector<std::string> &notices_;
};

} // namespace

std::vector<FoundGitSetting> read_git_files(const AsUser &user, const UserPaths &paths, const std::string &home, Deadline deadline,
                                            std::vector<std::string> &notices)
{
    GitFiles files(user, paths, home, deadline, notices);
    for (const char *name : {"/.config/git/config", "/.gitconfig"}) // the second wins, as with git, which reads both
        files.read_into(home + name, nullptr, 0);
    return files.take();
}

// --- Starting a program of the host as a user and reading what it writes.

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
