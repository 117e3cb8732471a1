// The session's loop: three peers (wrapper, in-unit launcher, systemd) and the runner's own termination.
#include "runner/supervise.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"

#include <array>
#include <csignal>
#include <optional>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int start_patience_seconds = 30;
constexpr int stop_patience_seconds = 15; // the unit's own stop takes at most 2 s per stage
constexpr int handover_patience_seconds = 10;

class Supervisor {
public:
    Supervisor(SystemdBus &systemd, Session session) : systemd_(systemd), session_(std::move(session)) {}

    AgentEnded run()
    {
        Deadline deadline = in_seconds(start_patience_seconds);
        for (;;) {
            systemd_.process();
            const ServiceResult result = systemd_.service_result();
            if (result.ended) return conclude(result);
            if (launched_ && !stopping_)
                wait(std::nullopt);
            else if (!wait(deadline)) {
                if (stopping_)
                    throw Failure(ExitStatus::system_failure,
                                  "the session's unit " + session_.service + " does not stop; see: systemctl status " + session_.service);
                problem_ = "the session's unit did not come up within " + std::to_string(start_patience_seconds) + " seconds";
                stop();
            }
            if (stopping_ && !stop_deadline_set_) {
                deadline = in_seconds(stop_patience_seconds);
                stop_deadline_set_ = true;
            }
        }
    }

private:
    // False when the deadline passed.
    bool wait(std::optional<Deadline> deadline)
    {
        int timeout = -1;
        if (deadline) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
            if (left <= 0) return false;
            timeout = static_cast<int>(left) + 1;
        }
        std::array<pollfd, 4> waits{pollfd{systemd_.fd().get(), POLLIN, 0}, pollfd{control_open_ ? session_.control.get() : -1, POLLIN, 0},
                                    pollfd{wrapper_open_ ? session_.wrapper.get() : -1, POLLIN, 0},
                                    pollfd{session_.termination.get(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), timeout) < 0 && errno != EINTR) throw_errno("waiting for the session");
        if (waits[1].revents != 0) hear_launcher();
        if (waits[2].revents != 0) hear_wrapper();
        if (waits[3].revents != 0) hear_termination();
        return true;
    }

    void hear_launcher()
    {
        try {
            const std::optional<Packet> packet = receive_packet(session_.control, in_seconds(0));
            control_open_ = packet.has_value();
            if (!packet) return;
            const ExecMessage message = decode_exec_message(packet->bytes);
            if (std::holds_alternative<ExecReady>(message))
                launcher_ready_ = true;
            else if (std::holds_alternative<ExecStopped>(message))
                tell_wrapper(AgentStopped{});
            else if (const auto *failed = std::get_if<ExecFailed>(&message))
                problem_ = failed->text;
            hand_over_when_ready();
        } catch (const ProtocolError &) {
            control_open_ = false; // the agent may have taken its launcher over; systemd's account decides
        }
    }

    // The agent starts when its launcher waits for it and, where it has a terminal, when that is set up.
    void hand_over_when_ready()
    {
        if (launched_ || !launcher_ready_ || (session_.record.has_terminal && !terminal_ready_)) return;
        try {
            send_launch(session_.control, session_.record, session_.stdio, in_seconds(handover_patience_seconds));
            launched_ = true;
        } catch (const Failure &failure) {
            problem_ = failure.what();
            stop();
        }
        for (auto &fd : session_.stdio)
            fd.reset(); // the agent's end of a pipe must be the last one
    }

    void hear_wrapper()
    {
        try {
            const std::optional<Packet> packet = receive_packet(session_.wrapper, in_seconds(0));
            if (packet && packet->fds.empty()) return obey(decode_wrapper_message(packet->bytes));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): a wrapper that breaks the protocol is treated as gone
        }
        wrapper_open_ = false; // its death is the session's end (design rule 9)
        if (defence_is_on("wrapper-eof")) stop();
    }

    void obey(const WrapperMessage &message)
    {
        if (std::holds_alternative<TerminalReady>(message)) {
            terminal_ready_ = true;
            hand_over_when_ready();
            return;
        }
        if (control_open_) send_packet(session_.control, encode(message), {}, in_seconds(1));
    }

    void tell_wrapper(const RunnerMessage &message)
    {
        if (!wrapper_open_) return;
        try {
            send_packet(session_.wrapper, encode(message), {}, in_seconds(1));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): a wrapper that is gone is noticed by the loop
        }
    }

    void hear_termination()
    {
        signalfd_siginfo information{};
        if (read(session_.termination.get(), &information, sizeof information) > 0) stop();
    }

    void stop()
    {
        if (stopping_) return;
        stopping_ = true;
        systemd_.stop_unit(session_.service);
    }

    AgentEnded conclude(const ServiceResult &result)
    {
        while (control_open_ && wait_for_input(session_.control, Clock::now()))
            hear_launcher();
        if (!launched_ || !problem_.empty()) {
            std::string text = "the agent was not started: ";
            if (!problem_.empty())
                text += escape_for_display(problem_);
            else
                text += "systemd could not prepare the sandbox (" + result.result + ", status " + std::to_string(result.status) + ")";
            if (stopping_ && problem_.empty()) text = "the session was ended before the agent was started";
            // pi-agent-exec ends with the status of its own failure.
            const bool known = result.code == CLD_EXITED && result.status >= static_cast<int>(ExitStatus::usage) &&
                               result.status <= static_cast<int>(ExitStatus::configuration);
            throw Failure(launched_ && known ? static_cast<ExitStatus>(result.status) : ExitStatus::unavailable,
                          text + "; see: journalctl -u " + session_.service);
        }
        return AgentEnded{result.code != CLD_EXITED, result.status};
    }

    SystemdBus &systemd_;
    Session session_;
    std::string problem_;
    bool launcher_ready_ = false;
    bool terminal_ready_ = false;
    bool launched_ = false;
    bool control_open_ = true;
    bool wrapper_open_ = true;
    bool stopping_ = false;
    bool stop_deadline_set_ = false;
};

} // namespace

UniqueFd watch_termination()
{
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
        sigaddset(&watched, number);
    if (sigprocmask(SIG_BLOCK, &watched, nullptr) != 0) throw_errno("blocking signals");
    UniqueFd fd = UniqueFd::adopt(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw_errno("watching signals");
    return fd;
}

AgentEnded supervise(SystemdBus &systemd, Session session)
{
    return Supervisor(systemd, std::move(session)).run();
}

} // namespace pi_agent
