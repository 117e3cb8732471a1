// The session's loop: wrapper, launcher inside, what confines it, and the runner's own termination.

#include "runner/root/confined/session_end.hpp"

#include <sys/signalfd.h>

#include <csignal>

namespace pi_agent {

namespace {

constexpr int sending_seconds = 1;
constexpr int last_word_seconds = 1; // of a launcher that is gone
constexpr int answer_seconds = 1;    // the wrapper waits a little longer (wrapper/user_terminal.cpp)

constexpr int start_patience_seconds = 30;
constexpr int grace_seconds = 2; // for the agent to end by itself
constexpr const char *sudo_ended_it =
    "sudo has ended the session: its command_timeout is over, or it was told to; the administrator finds more with: pi-agentctl doctor";

// Why there was no agent, or none that ran: `problem`, or what the sandbox reports. `stopped`: it was asked to end.
Failure no_agent(Sandbox &sandbox, const SandboxResult &result, const std::string &problem, bool launched, bool stopped)
{
    const std::string why = problem.empty() ? sandbox.explain(result) : escape_for_display(problem);
    const bool asked = stopped && problem.empty();
    if (asked) return {FailureKind::changed_meanwhile, "the session was ended while it was being prepared; try again"}; // by apply or stop
    const std::string text = "the agent was not started: " + why;
    // pi-agent-exec ends with the status of its own failure.
    const bool known = result.code == CLD_EXITED && result.status >= static_cast<int>(ExitStatus::usage) &&
                       result.status <= static_cast<int>(ExitStatus::configuration);
    return Failure(launched && known ? static_cast<ExitStatus>(result.status) : ExitStatus::unavailable, text + sandbox.where_to_look());
}

class Supervisor {
public:
    Supervisor(Sandbox &sandbox, const Session &session, UniqueFd terminal)
        : sandbox_(sandbox), session_(session), launcher_(session.control), terminal_(std::move(terminal))
    {
    }

    AgentEnded run()
    {
        deadline_ = in_seconds(start_patience_seconds);
        for (const auto &message : session_.early)
            obey(message);
        for (;;) {
            sandbox_.process();
            if (const SandboxResult result = sandbox_.result(); result.ended) return conclude(result);
            if (wait()) continue;
            if (killing_) throw Failure(ExitStatus::system_failure, sandbox_.facts().name + " does not stop" + sandbox_.where_to_look());
            if (!stopping_)
                problem_ = (launcher_ready_ ? "the wrapper did not set its terminal up" : sandbox_.facts().name + " did not come up") +
                           " within " + std::to_string(start_patience_seconds) + " seconds";
            end_all();
        }
    }

private:
    // False when the deadline passed.
    bool wait()
    {
        if (deadline_ && Clock::now() >= *deadline_) return false;
        const Deadline until = std::min({sandbox_.next_look(deadline_.value_or(Deadline::max())), launcher_.answer_due(),
                                         session_.gate != nullptr ? session_.gate->due() : Deadline::max()});
        const int timeout = until == Deadline::max() ? -1 : milliseconds_left(until);
        // The user can stop the receiver, so this also watches for the end of the wrapper's socket.
        std::array<pollfd, 7> waits{pollfd{sandbox_.fd().get(), POLLIN, 0},
                                    pollfd{launcher_.fd().get(), POLLIN, 0},
                                    pollfd{wrapper_open_ ? session_.receiver.channel().get() : -1, POLLIN, 0},
                                    pollfd{wrapper_open_ ? session_.wrapper.get() : -1, POLLRDHUP, 0},
                                    pollfd{session_.termination.get(), POLLIN, 0},
                                    pollfd{session_.gate != nullptr ? session_.gate->fd().get() : -1, POLLIN, 0},
                                    pollfd{stopping_ ? -1 : session_.job.get(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), memory_.patience(timeout)) < 0 && errno != EINTR) throw_errno("waiting for the session");
        memory_.look();
        if (waits[1].revents != 0) hear_launcher();
        if (waits[2].revents != 0) hear_receiver();
        if (waits[3].revents != 0) lose_wrapper();
        if (waits[4].revents != 0) hear_termination();
        if (waits[6].revents != 0) lose_job();
        hear_gate(waits[5].revents != 0);
        if (const auto signal = launcher_.take_unanswered()) end_for(*signal);
        return true;
    }

    void hear_gate(bool has_spoken)
    {
        if (session_.gate == nullptr) return;
        const std::string notice = has_spoken ? session_.gate->hear() : session_.gate->look();
        if (!notice.empty() && !stopping_) session_.to_wrapper.tell(Notice{notice});
    }

    void hear_launcher()
    {
        const std::optional<ExecMessage> message = launcher_.receive();
        if (!message) return;
        if (std::holds_alternative<ExecReady>(*message))
            hear_ready();
        else if (const auto *stopped = std::get_if<ExecStopped>(&*message))
            tell_of_stop(stopped->number);
        else if (const auto *failed = std::get_if<ExecFailed>(&*message))
            problem_ = failed->text;
        else if (const auto *ended = std::get_if<ExecEnded>(&*message))
            hear_end(*ended);
        else if (launcher_.take_answer())
            session_.to_wrapper.tell_at_once(SignalHeard{});
        hand_over_when_ready();
    }

    // A second ExecReady: systemd has killed all that ran in the unit, and started the unit again with the same standard input (not
    // under an engine: its door is closed by then, and the launcher fails there).
    void hear_ready()
    {
        if (!std::exchange(launcher_ready_, true)) return;
        if (!launched_) problem_ = "its unit was restarted";
        session_.to_wrapper.tell(Notice{sandbox_.facts().name + " was restarted, which has killed the agent; start pi again"});
        end_all();
    }

    // The launcher waits for the answer, and everything that ends with the sandbox waits too. Once: a repeated report gets no answer.
    void hear_end(const ExecEnded &ended)
    {
        if (std::exchange(said_, ended)) return;
        session_.agent_has_ended();
        try {
            launcher_.send(ContinueAgent{});
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: it may have been killed meanwhile
        }
        session_.while_it_ends();
    }

    // A launcher that the agent has stopped, or that waits for the agent's file, passes nothing on and sees no end. The kernel ends them.
    void end_for(int signal)
    {
        stopping_ = true;
        ended_for_ = signal;
        session_.to_wrapper.tell_at_once(
            Notice{"the session's first process did not pass the signal on, so all processes of the session are killed"});
        try {
            sandbox_.kill();
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the stop that follows does the same, later
        }
        end_all();
    }

    void send_on(const WrapperMessage &message)
    {
        launcher_.send(message);
        if (!stopping_ && !said_) launcher_.expect_answer(message);
    }

    // The agent starts when its launcher waits for it and, where it has a terminal, when the terminal is set up.
    void hand_over_when_ready()
    {
        if (handing_over_ || !launcher_ready_ || (terminal_ && !terminal_ready_)) return;
        handing_over_ = true;
        attempt([&] {
            session_.require_enforced();
            session_.receiver.start_handover(session_.control);
        });
    }

    void hand_record_over()
    {
        attempt([&] {
            session_.hand_record_over(terminal_);
            for (const int number : early_signals_)
                send_on(ForwardSignal{number});
            if (with_keyboard_) launcher_.send(ContinueAgent{true});
            launched_ = true;
            if (!stopping_) deadline_.reset();
        });
        memory_.wait_begins();
        fault_point("handed-over");
        terminal_.reset(); // the agent's must be the last one, or the wrapper never sees the end of the output
    }

    template <typename Step>
    void attempt(const Step &step)
    {
        try {
            step();
        } catch (const Failure &failure) {
            problem_ = failure.what();
            stop();
        }
    }

    void hear_receiver()
    {
        const ReceiverEvent event = session_.receiver.receive();
        if (std::holds_alternative<StdioHandedOver>(event)) {
            if (handing_over_ && !launched_ && !stopping_) hand_record_over();
            return;
        }
        if (const auto *bytes = std::get_if<std::string>(&event)) {
            try {
                return obey(decode_wrapper_message(*bytes));
            } catch (const Failure &) { // NOLINT(bugprone-empty-catch): a wrapper that breaks the protocol is treated as gone
            }
        }
        lose_wrapper();
    }

    // The wrapper's death is the session's end (design rule 9).
    void lose_wrapper()
    {
        wrapper_open_ = false;
        if (defence_is_on("wrapper-eof")) stop();
    }

    void obey(const WrapperMessage &message)
    {
        if (const auto *ready = std::get_if<TerminalReady>(&message)) {
            terminal_ready_ = true;
            with_keyboard_ = ready->with_keyboard;
            hand_over_when_ready();
        } else if (launched_) {
            if (std::holds_alternative<ContinueAgent>(message)) stops_told_.clear();
            send_on(message);
        } else if (const auto *signal = std::get_if<ForwardSignal>(&message)) {
            early_signals_.insert(signal->number);
        } else {
            early_signals_.erase(SIGTSTP);
        }
    }

    // The wrapper answers each stop with ContinueAgent. An agent can stop and go on as often as it likes, by one signal or another, so a
    // stop that the wrapper has not answered yet is not reported again. Nobody waits for a wrapper that is itself stopped.
    void tell_of_stop(int number)
    {
        if (!wrapper_open_) return;
        if (!defence_is_on("stops-do-not-wait")) return session_.to_wrapper.tell(AgentStopped{number});
        if (!stops_told_.contains(number) && session_.to_wrapper.tell_at_once(AgentStopped{number})) stops_told_.insert(number);
    }

    void hear_termination()
    {
        signalfd_siginfo information{};
        if (read(session_.termination.get(), &information, sizeof information) <= 0) return;
        // A wrapper may not signal root, so this parent is a sudo that has waited.
        if (!stopping_ && information.ssi_pid == static_cast<std::uint32_t>(getppid())) session_.to_wrapper.tell(Notice{sudo_ended_it});
        stop();
    }

    // Whatever of the job lives on: Slurm counts no part of it any more. A user may have handed our socket to a process of another job.
    void lose_job()
    {
        if (!stopping_) session_.to_wrapper.tell(Notice{"the job of the cluster has ended, and so does the session"});
        stop();
    }

    // First asks the agent (TERM). When the sandbox has not ended within the grace period, stops it, which kills.
    void stop()
    {
        if (stopping_) return;
        stopping_ = true;
        if (!launched_ || !launcher_.is_open()) return end_all();
        try {
            launcher_.send(ForwardSignal{SIGTERM});
            deadline_ = in_seconds(grace_seconds);
        } catch (const Failure &) {
            return end_all();
        }
    }

    void end_all()
    {
        stopping_ = killing_ = true;
        deadline_ = in_seconds(sandbox_stop_seconds);
        sandbox_.stop();
    }

    AgentEnded conclude(const SandboxResult &result)
    {
        launcher_.hear_last_words([&](const ExecMessage &message) {
            if (const auto *failed = std::get_if<ExecFailed>(&message)) problem_ = failed->text;
            if (const auto *ended = std::get_if<ExecEnded>(&message)) said_ = *ended;
        });
        if (!launched_ || !problem_.empty()) throw no_agent(sandbox_, result, problem_, launched_, stopping_);
        return ended_for_ ? AgentEnded{true, *ended_for_} : agent_end(result, said_, killing_);
    }

    Sandbox &sandbox_;
    const Session &session_;
    Launcher launcher_;
    std::string problem_;
    UniqueFd terminal_;
    std::set<int> early_signals_; // that came before there was an agent
    bool launcher_ready_ = false;
    bool terminal_ready_ = false;
    bool with_keyboard_ = false;
    std::optional<ExecEnded> said_;
    bool handing_over_ = false;
    bool launched_ = false;
    std::optional<int> ended_for_; // the signal that the launcher did not pass on
    std::set<int> stops_told_;     // the signals of stops that the wrapper has not answered
    bool wrapper_open_ = true;
    bool stopping_ = false;
    std::optional<Deadline> deadline_;
    StartUpMemory memory_;
    bool killing_ = false;
};

} // namespace

std::optional<ExecMessage> Launcher::receive()
{
    try {
        const std::optional<Packet> packet = receive_plain_packet(control_, Clock::now());
        is_open_ = packet.has_value();
        if (packet) return decode_exec_message(packet->bytes);
    } catch (const ProtocolError &) {
        is_open_ = false; // the agent may have taken its launcher over; only what is seen from outside counts
    }
    return std::nullopt;
}

void Launcher::hear_last_words(const std::function<void(const ExecMessage &)> &hear)
{
    const Deadline deadline = in_seconds(last_word_seconds);
    while (is_open_ && wait_for_input(control_, Clock::now()) && Clock::now() < deadline)
        if (const auto message = receive()) hear(*message);
}

void Launcher::send(const WrapperMessage &message)
{
    if (is_open_) send_packet(control_, encode(message), {}, in_seconds(sending_seconds));
}

void Launcher::expect_answer(const WrapperMessage &message)
{
    const auto *signal = std::get_if<ForwardSignal>(&message);
    if (signal == nullptr || !asks_for_end(signal->number) || unanswered_) return;
    unanswered_ = signal->number;
    if (defence_is_on("signals-are-heard")) due_ = in_seconds(answer_seconds);
}

bool Launcher::take_answer() noexcept
{
    due_ = Deadline::max();
    return std::exchange(unanswered_, std::nullopt).has_value();
}

std::optional<int> Launcher::take_unanswered()
{
    if (Clock::now() < due_ || (is_open_ && wait_for_input(control_, Clock::now())))
        return std::nullopt; // this process may be the late one
    due_ = Deadline::max();
    return unanswered_;
}

AgentEnded supervise(Sandbox &sandbox, const Session &session, UniqueFd terminal)
{
    return Supervisor(sandbox, session, std::move(terminal)).run();
}

} // namespace pi_agent
