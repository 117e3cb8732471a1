// pi: the wrapper that a user types. Unprivileged; refuses early, hands the request to the root-only runner, ends as the agent ends.
#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/base/port_connection.hpp"
#include "common/base/terminal_text.hpp"
#include "common/host/identity.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/aftermath.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

// A closed standard descriptor would be taken by the next file that is opened.
void open_missing_stdio()
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return;
}

// A prompt is nobody else's business, and every user of the host can read the arguments of every process.
void hide_arguments(int argc, char **argv)
{
    for (int index = 1; index < argc; ++index)
        std::memset(argv[index], 0, std::strlen(argv[index]));
}

Request complete_request(Request request, const std::optional<UserTerminal> &terminal, const EarlyLook &look)
{
    const mode_t mask = umask(0);
    umask(mask);
    request.umask = mask;
    rlimit open_files{};
    if (getrlimit(RLIMIT_NOFILE, &open_files) == 0) request.open_files = open_files.rlim_cur;
    put_variables_into(request, look);
    if (terminal) {
        request.on_terminal = terminal->on_terminal();
        request.window = terminal->size();
    }
    return request;
}

// --- Standard output and error that are the user's files, as pipes for the session: a program inside can open /dev/stdout again.

constexpr int copy_patience_seconds = 20; // for a slow disk, or what holds the pipe though the session has ended

bool needs_copy(int number, struct stat &facts)
{
    const int flags = fcntl(number, F_GETFL);
    const bool is_written =
        flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == O_WRONLY; // the place of one that is read counts inside
    return is_written && fstat(number, &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & S_IWOTH) == 0;
}

// No signal but KILL ends or stops it, for what came through the pipe would be lost; a session of its own keeps it out of job control.
[[noreturn]] void run_child(int pipe, int file)
{
    sigset_t all;
    sigfillset(&all);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool is_ready = sigprocmask(SIG_SETMASK, &all, nullptr) == 0 && null >= 0 && place_descriptors({pipe, file, null, null}) &&
                          close_range(3, ~0U, 0) == 0 && setsid() >= 0 && chdir("/") == 0;
    _exit(is_ready ? copy_all(FdRef(STDIN_FILENO), FdRef(STDOUT_FILENO)) : errno);
}

// The user owns the file, so a program inside could write it and not open it. The session gets a pipe instead, and a child of this process
// copies: into the descriptor that the user's shell made, so that its place and O_APPEND count as before. The child ends when no process of
// the session holds the pipe any more, even if this process was killed. One pipe serves both where they are one file.
class OutputFiles {
public:
    // Only files that are open to be written and that others may not write. Throws Failure.
    OutputFiles()
    {
        struct stat of_output {};
        struct stat of_error {};
        const bool copies_output = needs_copy(STDOUT_FILENO, of_output);
        const auto begin = [&](int number, const char *name) {
            Pipe pipe = make_pipe();
            signal(SIGCHLD, SIG_DFL); // whoever ignores it never hears how a child ended
            const pid_t child = fork();
            if (child < 0) throw_errno("starting to copy into " + std::string(name));
            if (child == 0) run_child(pipe.reading.get(), number);
            stdio_.at(static_cast<std::size_t>(number)) = pipe.writing.get();
            copies_.push_back({name, std::move(pipe.writing), child});
        };
        if (copies_output) begin(STDOUT_FILENO, "standard output");
        if (!needs_copy(STDERR_FILENO, of_error)) return;
        if (copies_output && of_output.st_dev == of_error.st_dev && of_output.st_ino == of_error.st_ino)
            stdio_[2] = stdio_[1]; // in the order in which it was written
        else
            begin(STDERR_FILENO, "standard error");
    }
    OutputFiles(const OutputFiles &) = delete;
    OutputFiles &operator=(const OutputFiles &) = delete;
    // The session has ended: lets go of the pipes, waits until all is in the files, and says what is not. What takes too long is killed.
    ~OutputFiles()
    {
        for (auto &copy : copies_)
            copy.pipe.reset();
        const Deadline deadline = in_seconds(copy_patience_seconds);
        std::string late;
        for (const auto &copy : copies_) {
            int status = 0;
            pid_t ended = 0;
            while ((ended = waitpid(copy.child, &status, WNOHANG)) == 0 && Clock::now() < deadline)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (ended == 0) { // whoever has the pipe could write into the user's file for ever
                kill(copy.child, SIGKILL);
                late += (late.empty() ? "" : " and ") + std::string(copy.name);
            } else if (ended == copy.child && status != 0) {
                say("pi: " + std::string(copy.name) + ": " +
                    (WIFEXITED(status) ? std::strerror(WEXITSTATUS(status)) : "what copied into it was killed") +
                    ": what the agent wrote from there on is lost\n");
            }
        }
        if (!late.empty())
            say("pi: " + late + ": something still has the output open, or the disk is too slow: what is not in the file by now is lost\n");
    }

    // What the session gets; borrowed.
    [[nodiscard]] std::array<int, 3> stdio() const { return stdio_; }

private:
    struct Copy {
        const char *name; // for people
        UniqueFd pipe;
        pid_t child;
    };
    std::array<int, 3> stdio_{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    std::vector<Copy> copies_;
};

AgentEnded run(const Request &asked, const std::vector<AskedPort> &ports)
{
    const UniqueFd cwd = open_cwd();
    const EarlyLook look = refuse_early(cwd, asked_by(asked));
    if (asked.debug) tell(look.decision);
    if (asked.program == Program::agent && asks_for_self_update(asked.arguments))
        throw Failure(FailureKind::self_update,
                      "the agent is installed for the whole host, so a session cannot update it; ask the administrator for a newer "
                      "version. Your own packages you can update: pi update --extensions");
    // Inside of a job the session is where it should be; and a canary is for this very host.
    const bool is_placed = look.job && asked.program != Program::canary && !has_ancestor(looks_like_job);
    if (is_placed && !ports.empty())
        throw Failure(FailureKind::start_asks,
                      "denied: this session runs on a node of the cluster, and --pi-agent-port leads to sessions of "
                      "this host alone; leave the option out");
    const auto client = [&](SessionId &session) {
        std::optional<UserTerminal> terminal = UserTerminal::find();
        Request request = complete_request(asked, terminal, look);
        std::optional<OutputFiles> files; // whole when this returns, before the look at what the session left
        if (!is_placed) files.emplace();  // on a node they are pipes anyway
        return run_client(ClientInput{std::move(request), cwd,
                                      files ? files->stdio() : std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}, std::move(terminal),
                                      look.clipboard, SessionPorts(ports), is_placed ? look.job : std::nullopt},
                          session);
    };
    if (!is_placed) return run_watched(look, asked.program, client);
    SessionId session; // the node looks at what it leaves
    return client(session);
}

// A policy can be wrong in several places, each with a line of its own; the last line says where to read on.
int report(const Failure &failure)
{
    std::string said = failure.what();
    if (const std::string pointer = pointer_to(failure.kind(), failure.status()); !pointer.empty()) said += "\n" + pointer;
    for (const auto line : split(said, '\n'))
        tell(std::string(line), true);
    return static_cast<int>(failure.status());
}

} // namespace

int main(int argc, char **argv)
{
    open_missing_stdio();
    Program program = Program::agent;
    try {
        const WrapperOptions options = parse_options(argc, argv);
        program = options.request.program;
        if (defence_is_on("hidden-arguments")) hide_arguments(argc, argv);
        if (options.help) {
            const auto terminal = text_terminal(STDOUT_FILENO);
            const auto text = terminal ? fitted(wrapper_help, *terminal) : wrapper_help;
            return std::fputs(text.c_str(), stdout) < 0 ? static_cast<int>(ExitStatus::system_failure) : 0;
        }
        if (options.explain) {
            execl(build::ctl_path, "pi", "explain", static_cast<char *>(nullptr));
            throw_errno(std::string("running ") + build::ctl_path);
        }
        if (options.on_node) return serve_node();
        end_as(run(options.request, options.ports));
    } catch (const EarlyRefusal &refusal) {
        record_refusal(refusal, program);
        return report(refusal);
    } catch (const Failure &failure) {
        return report(failure);
    } catch (const std::exception &failure) {
        return report(Failure(ExitStatus::internal, std::string("internal error: ") + failure.what()));
    }
}
