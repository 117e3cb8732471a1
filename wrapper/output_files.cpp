// Copies what a session writes into the user's files.
#include "wrapper/output_files.hpp"

#include "common/base/files.hpp"
#include "wrapper/session_client.hpp"

#include <sys/wait.h>

#include <cstring>
#include <thread>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 20; // for a slow disk, or what holds the pipe though the session has ended

bool needs_copy(int number, struct stat &facts)
{
    const int flags = fcntl(number, F_GETFL);
    const bool is_written =
        flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == O_WRONLY; // the place of one that is read counts inside
    return is_written && fstat(number, &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & S_IWOTH) == 0;
}

// The errno of a write that failed.
int copy_all(int from, int to)
{
    std::array<char, std::size_t{64} << 10U> space{};
    for (;;) {
        const ssize_t length = read(from, space.data(), space.size());
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return length == 0 ? 0 : errno;
        for (ssize_t done = 0; done < length;) {
            const ssize_t written = write(to, space.data() + done, static_cast<std::size_t>(length - done));
            if (written < 0 && errno != EINTR) return errno;
            done += std::max<ssize_t>(written, 0);
        }
    }
}

// No signal but KILL ends or stops it, for what came through the pipe would be lost; a session of its own keeps it out of job control.
[[noreturn]] void run_child(int pipe, int file)
{
    sigset_t all;
    sigfillset(&all);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool is_ready = sigprocmask(SIG_SETMASK, &all, nullptr) == 0 && null >= 0 && place_descriptors({pipe, file, null, null}) &&
                          close_range(3, ~0U, 0) == 0 && setsid() >= 0 && chdir("/") == 0;
    _exit(is_ready ? copy_all(STDIN_FILENO, STDOUT_FILENO) : errno);
}

} // namespace

OutputFiles::OutputFiles() : stdio_{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}
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

std::array<int, 3> OutputFiles::stdio() const
{
    return stdio_;
}

OutputFiles::~OutputFiles()
{
    for (auto &copy : copies_)
        copy.pipe.reset();
    const Deadline deadline = in_seconds(patience_seconds);
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

} // namespace pi_agent
