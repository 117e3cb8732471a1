// The wrapper's side of a session.
#include "wrapper/session_client.hpp"

#include "common/error.hpp"
#include "wrapper/runner_process.hpp"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int request_patience_seconds = 30;
constexpr int farewell_patience_seconds = 20; // the runner's own stop and cleanup

// What the caller ignores stays ignored (nohup, background jobs): a blocked signal would be queued even so.
UniqueFd watch_signals()
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction present {};
        if (!is_forwarded_signal(number) || sigaction(number, nullptr, &present) != 0 || present.sa_handler == SIG_IGN) continue;
        sigaddset(&watched, number);
    }
    signal(SIGCHLD, SIG_DFL); // an inherited "ignore" would reap sudo before we see how it ended
    if (sigprocmask(SIG_BLOCK, &watched, nullptr) != 0) throw_errno("blocking signals");
    UniqueFd fd = UniqueFd::adopt(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw_errno("watching signals");
    return fd;
}

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output()
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0)
        throw_errno("letting go of standard input and output");
}

class Client {
public:
    explicit Client(const ClientInput &input) : input_(input), signals_(watch_signals()) {}

    AgentEnded run()
    {
        try {
            send_request(runner_.channel(), input_.request, input_.cwd, input_.stdio, in_seconds(request_patience_seconds));
        } catch (const SystemFailure &) { // the runner has refused already; its word is on the way
        } catch (const DeadlineExceeded &) {
        }
        let_go_of_input_and_output();
        for (;;) {
            std::array<pollfd, 2> waits{pollfd{runner_.channel().get(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
            const int timeout = leaving_ ? farewell_patience_seconds * 1000 : -1;
            const int ready = poll(waits.data(), waits.size(), timeout);
            if (ready < 0 && errno != EINTR) throw_errno("waiting for the runner");
            if (ready == 0)
                throw Failure(ExitStatus::system_failure,
                              "sudo ended and the runner does not answer; see: systemctl list-units 'pi-agent*'");
            if (waits[1].revents != 0) hear_signals();
            if (waits[0].revents == 0) continue;
            std::optional<Packet> packet = receive_packet(runner_.channel(), in_seconds(1));
            if (!packet) runner_.explain_silence();
            if (const std::optional<AgentEnded> ended = hear_runner(decode_runner_message(packet->bytes))) return *ended;
        }
    }

private:
    std::optional<AgentEnded> hear_runner(const RunnerMessage &message)
    {
        if (const auto *failure = std::get_if<FailureReport>(&message)) throw Failure(failure->status, failure->text);
        if (const auto *notice = std::get_if<Notice>(&message)) {
            std::fprintf(stderr, "pi: %s\n", notice->text.c_str()); // root's words: names in them are escaped already
            return std::nullopt;
        }
        return std::get<AgentEnded>(message);
    }

    void hear_signals()
    {
        signalfd_siginfo information{};
        while (read(signals_.get(), &information, sizeof information) == static_cast<ssize_t>(sizeof information)) {
            if (information.ssi_signo == SIGCHLD) {
                runner_.reap();
                if (runner_.has_ended() && !leaving_) leave();
                continue;
            }
            try {
                send_packet(runner_.channel(), encode_signal(static_cast<int>(information.ssi_signo)), {}, in_seconds(1));
            } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the runner is gone; the loop learns it next
            }
        }
    }

    // sudo is gone but the runner may live (kill -9 of sudo): our silence ends the session, and the runner's last word is waited for.
    void leave()
    {
        leaving_ = true;
        shutdown(runner_.channel().get(), SHUT_WR);
    }

    const ClientInput &input_;
    UniqueFd signals_;
    RunnerProcess runner_;
    bool leaving_ = false;
};

} // namespace

AgentEnded run_client(const ClientInput &input)
{
    return Client(input).run();
}

void end_as(const AgentEnded &ended)
{
    if (!ended.by_signal) _exit(ended.value);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(ended.value, SIG_DFL);
    sigset_t nothing;
    sigemptyset(&nothing);
    sigprocmask(SIG_SETMASK, &nothing, nullptr);
    kill(getpid(), ended.value);
    _exit(128 + ended.value);
}

} // namespace pi_agent
