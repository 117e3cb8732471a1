// Starting the runner through sudo, and telling why that failed.
#include "common/ask/runner_process.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/identity.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr int exec_failed = 127;
constexpr std::size_t complaint_limit = 4096;
// More than all of the runner's own deadlines for one question (runner/root/own/questions.cpp): it says what took too long.
constexpr int answer_patience_seconds = 120;
constexpr int told_patience_seconds = 2; // longer, and the user hears what is waited for
constexpr int end_patience_seconds = 5;  // for a sudo whose command has ended: it closes the session of PAM and writes its log

// The keyboard's signals, which came before this child had left the terminal's session: the wrapper has had them too.
void forget_pending_signals()
{
    for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGTERM}) {
        const auto before = signal(number, SIG_IGN);
        signal(number, before);
    }
}

// The reason goes where sudo's words would have gone.
[[noreturn]] void give_up(int complaint)
{
    dprintf(complaint, "%d", errno);
    _exit(exec_failed);
}

[[noreturn]] void become_sudo(int channel, int complaint)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool alone = setsid() >= 0;
    forget_pending_signals();
    const bool ready = alone && null >= 0 && place_descriptors({channel, null, complaint}) &&
                       close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0 && unblock_signals();
    if (!ready) give_up(complaint);
    // Named root: a site's runas_default= would otherwise ask for another account.
    std::array<const char *, 7> arguments = {"sudo", "-n", "-u", "root", "--", build::runner_path, nullptr};
    std::array<const char *, 3> environment = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", nullptr};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): execve(2) does not write
    execve(build::sudo_path, const_cast<char *const *>(arguments.data()), const_cast<char *const *>(environment.data()));
    give_up(complaint);
}

// `complaint`: the number that give_up() wrote, or what the loader of programs said before sudo itself ran.
std::string words_for_start_failure(const std::string &complaint)
{
    const std::string starting = std::string("starting ") + build::sudo_path;
    rlimit memory{};
    const bool is_limited = getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY;
    const char *more_memory = is_limited ? "; raise the limit of memory in this shell (ulimit -v)" : "";
    if (complaint.empty() || complaint.find_first_not_of("0123456789") != std::string::npos)
        return starting + " failed" + (complaint.empty() ? ": it ended with status " + std::to_string(exec_failed) : ": " + complaint) +
               (is_limited ? more_memory : "; ask the administrator to repair the package sudo");
    const auto problem = static_cast<int>(std::strtol(complaint.c_str(), nullptr, 10));
    const std::string what = SystemFailure(problem, starting).what();
    if (problem == EMFILE) return what + "; raise the limit of open files in this shell (ulimit -n)";
    if (problem == ENOENT) return what + "; ask the administrator to install the package sudo";
    return problem == ENOMEM ? what + more_memory : what;
}

} // namespace

void require_sudo_can_work()
{
    if (const auto problem = problem_of_user_namespace()) throw Failure(FailureKind::namespaces, "denied: " + *problem);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        throw Failure(FailureKind::inside_session, "sudo cannot work in this shell, because its processes cannot gain privileges "
                                                   "(no_new_privs), as inside an agent's session; use an ordinary shell");
}

RunnerProcess::RunnerProcess(std::string_view question)
{
    auto [own, theirs] = make_channel();
    if (!question.empty()) send_packet(own, question, {}, Clock::now());
    auto [complaint, complaint_end] = make_pipe(O_NONBLOCK);
    complaint_ = std::move(complaint);
    pid_ = fork();
    if (pid_ < 0) throw_errno("starting sudo");
    if (pid_ == 0) become_sudo(theirs.get(), complaint_end.get());
    channel_ = std::move(own);
}

void RunnerProcess::reap()
{
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
}

std::string RunnerProcess::read_complaint()
{
    std::array<char, complaint_limit> buffer{};
    const ssize_t length = read(complaint_.get(), buffer.data(), buffer.size());
    std::string text(buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return joined(split(text, '\n'), " | ", [](const auto line) { return escape_for_display(line); });
}

void RunnerProcess::require_orderly_end()
{
    if (ended_ && WIFSIGNALED(status_))
        throw Failure(FailureKind::runner_ended,
                      "sudo or the runner was killed by signal " + std::to_string(WTERMSIG(status_)) + "; the session ended with it");
}

void RunnerProcess::wait_for_end()
{
    const UniqueFd process = open_process(pid_);
    if (!ended_ && process) wait_for_input(process, in_seconds(end_patience_seconds));
    reap();
}

void RunnerProcess::explain_silence()
{
    if (!ended_)
        throw Failure(FailureKind::runner_ended,
                      name() + " has closed the connection without an answer and does not end; it belongs to root, and "
                               "the administrator finds more with: sudo pi-agentctl doctor");
    const std::string complaint = read_complaint();
    const std::string words = complaint.empty() ? "" : ": " + complaint;
    require_orderly_end();
    const int code = WEXITSTATUS(status_);
    if (code == exec_failed) throw EarlyRefusal(Failure(FailureKind::sudo_missing, words_for_start_failure(complaint)));
    if (("| " + complaint).find("| pi-agent-runner:") !=
        std::string::npos) { // before it knew its caller, and so with no other way to say it
        const bool known = code >= static_cast<int>(ExitStatus::usage) && code <= static_cast<int>(ExitStatus::configuration);
        throw Failure(known ? static_cast<ExitStatus>(code) : ExitStatus::denied, "the runner refused" + words);
    }
    if (code == 1)
        throw EarlyRefusal(Failure(FailureKind::sudo_refused, "sudo did not run the runner" + words +
                                                                  "; if you were added to a group since your login, log in again; else ask "
                                                                  "the administrator to run: sudo pi-agentctl doctor"));
    throw Failure(FailureKind::runner_ended, "the runner ended without an answer (status " + std::to_string(code) + ")" + words +
                                                 "; the administrator finds more with: journalctl -t pi-agent-runner");
}

std::string ask_runner(std::string_view question)
{
    require_sudo_can_work();
    RunnerProcess runner(question);
    std::optional<Packet> answer;
    if (!wait_for_input(runner.channel(), in_seconds(told_patience_seconds)))
        std::fprintf(stderr, "pi-agentctl: waiting for %s, which runs the runner: two seconds without an answer; Ctrl-C ends this\n",
                     runner.name().c_str());
    try {
        answer = receive_record(runner.channel(), in_seconds(answer_patience_seconds));
    } catch (const DeadlineExceeded &) {
        throw Failure(FailureKind::runner_ended, "the runner does not answer; pgrep -a pi-agent shows whether it still runs");
    } catch (const ProtocolError &broken) { // it died in the middle of its answer, or is of another version
        throw Failure(FailureKind::runner_ended, std::string("the runner ended without an answer: ") + broken.what());
    }
    if (answer) return std::move(answer->bytes);
    runner.wait_for_end();
    runner.explain_silence();
}

} // namespace pi_agent
