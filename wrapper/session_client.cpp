// The wrapper's side of a session.
#include "wrapper/session_client.hpp"

#include "common/base/error.hpp"
#include "common/base/process.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/job_signals.hpp"
#include "wrapper/progress_line.hpp"
#include "wrapper/terminal_link.hpp"

#include <csignal>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr int foreground_interval_milliseconds = 200;
constexpr int last_output_interval_milliseconds = 50;
constexpr int hang_up_patience_seconds = 3;

// The agent has them now; a copy kept here would keep a pipe open after it.
void let_go_of_input_and_output()
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0)
        throw_errno("letting go of standard input and output");
}

class Client {
public:
    Client(ClientInput input, std::string &session) : input_(std::move(input)), session_(session), peer_(reach_peer(input_.job)) {}

    AgentEnded run()
    {
        fault_point("asking");
        try {
            send_request(peer_->channel(), input_.request, input_.cwd, input_.stdio, in_seconds(asking_patience_seconds));
        } catch (const SystemFailure &) { // the runner has refused already; its word is on the way
        } catch (const DeadlineExceeded &) {
        }
        fault_point("asked");
        let_go_of_input_and_output();
        try {
            while (!ended_ || (link_ && !link_->is_drained() && !link_->is_dead()))
                step();
        } catch (const Failure &) { // the agent may have run for long before that
            let_go_of_terminal();
            bid_farewell();
            throw;
        }
        let_go_of_terminal();
        fault_point("told");
        peer_->require_orderly_end();
        bid_farewell();
        return *ended_;
    }

private:
    void step()
    {
        while (asked_by_ != 0 && !signals_.are_waiting()) // what is for the agent comes first: it may be to end
            answer_agent();
        std::vector<pollfd> waits = link_ ? link_->waits() : std::vector<pollfd>(2, pollfd{-1, 0, 0});
        waits.push_back(pollfd{ended_ ? -1 : peer_->channel().get(), POLLIN, 0});
        waits.push_back(pollfd{signals_.fd().get(), POLLIN, 0});
        const int ready = poll(waits.data(), waits.size(), memory_.patience(patience()));
        if (ready < 0 && errno != EINTR) throw_errno("waiting for the runner");
        memory_.look();
        // Before the agent's output: a full-screen program's must not be drawn over the shell's.
        if (link_ && link_->is_waiting_for_foreground() && watch_background()) return;
        if (ready == 0 && !ended_) return give_up_waiting();
        if (link_) link_->serve(waits);
        if (waits[3].revents != 0) hear_signals();
        if (!ended_ && waits[2].revents != 0) hear_runner();
        if (link_ && !ended_ && input_.terminal->in_foreground() && link_->keyboard_was_taken()) give_keyboard();
        watch_terminal();
    }

    void hear_runner()
    {
        std::optional<Packet> packet = receive_packet(peer_->channel(), in_seconds(1));
        const RunnerMessage message = packet ? decode_runner_message(packet->bytes) : RunnerMessage(Notice{});
        if (const auto *preparing = std::get_if<Preparing>(&message)) return show_progress(preparing->doing);
        if (const auto *begun = std::get_if<SessionBegun>(&message)) {
            session_ = begun->id;
            memory_.wait_begins();
            return;
        }
        progress_.clear();
        if (!packet) {
            let_go_of_terminal(); // first, then the words
            peer_->explain_silence();
        }
        if (const auto *failure = std::get_if<FailureReport>(&message)) throw Failure(failure->status, failure->kind, failure->text);
        if (const auto *notice = std::get_if<Notice>(&message)) return show(notice->text);
        if (const auto *ended = std::get_if<AgentEnded>(&message)) {
            ended_ = *ended;
            deadline_.reset();
            if (link_) link_->finish();
        } else if (const auto *stopped = std::get_if<AgentStopped>(&message)) {
            if (link_ && asks_for_terminal(*stopped))
                asked_by_ = stopped->number;
            else
                stop_with_agent(SIGTSTP);
        } else if (std::holds_alternative<TerminalOpened>(message) && input_.terminal && !link_ && packet->fds.size() == 1) {
            link_.emplace(*input_.terminal, open_session_terminal(std::move(packet->fds[0])), input_.reaches_clipboard);
            // A shell is for somebody at the keyboard, and shows and asks more in the foreground.
            const bool at_once =
                input_.request.program == Program::shell && input_.terminal->has_input() && input_.terminal->in_foreground();
            if (at_once) link_->give_keyboard();
            tell_runner(TerminalReady{at_once});
        }
    }

    // Nobody waits for what runs in the background, and the line there is the shell's.
    void show_progress(const std::string &doing)
    {
        if (!input_.terminal || input_.terminal->in_foreground()) progress_.show(doing);
    }

    void show(const std::string &text)
    {
        const bool raw = input_.terminal && input_.terminal->is_output_raw() && input_.terminal->on_terminal()[2];
        // Root's words: names in them are escaped already.
        std::fprintf(stderr, "pi: %s%s", text.c_str(), raw ? "\r\n" : "\n");
    }

    void hear_signals()
    {
        for (JobSignals::Signal signal = signals_.next(); signal.number != 0; signal = signals_.next()) {
            if (signal.number == SIGCHLD) {
                peer_->reap();
                if (peer_->has_ended() && !ended_) leave();
            } else if (signal.number == SIGWINCH) {
                if (link_) link_->resize();
            } else if (signal.number == SIGCONT) {
                come_back();
            } else {
                if (ended_ && link_) return link_.reset(); // only a terminal that nobody reads is still waited for: the user has had enough
                stop_asked_ = stop_asked_ || signal.number == SIGTSTP;
                tell_runner(ForwardSignal{signal.number, signal.from_keyboard});
            }
        }
    }

    void let_go_of_terminal()
    {
        link_.reset();
        input_.terminal.reset();
    }

    void bid_farewell()
    {
        peer_->bid_farewell(signals_.fd(), [this] { return has_had_enough(); });
    }

    bool has_had_enough()
    {
        bool enough = false;
        for (JobSignals::Signal signal = signals_.next(); signal.number != 0; signal = signals_.next())
            enough = enough || ends_a_wait(signal.number);
        return enough;
    }

    void tell_runner(const WrapperMessage &message)
    {
        try {
            send_packet(peer_->channel(), encode(message), {}, in_seconds(1));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the runner is gone; the loop learns it next
        }
    }

    // The agent has stopped: so does the user's job, with the terminal as the shell left it, until fg or bg.
    void stop_with_agent(int number)
    {
        // Without a terminal only who stopped us would continue us: an agent that stops by itself must not stop its caller's script.
        if (!link_ && !stop_asked_) return tell_runner(ContinueAgent{});
        stop_asked_ = false;
        if (link_) link_->suspend();
        signals_.stop_job(number); // where nothing stops (no shell would continue us) the agent goes on at once
        come_back();
    }

    // The agent was stopped in the background of its terminal, as what wants to read or to change settings is. It is where the job is: in
    // the foreground it gets the keyboard; elsewhere the job is stopped in the same way, until the user brings it there.
    void answer_agent()
    {
        const int number = std::exchange(asked_by_, 0);
        if (!link_ || link_->is_dead()) return;
        if (!input_.terminal->in_foreground()) {
            link_->suspend();
            if (signals_.stop_job(number)) {
                asked_by_ = number; // continued, perhaps in the background again
                return;
            }
            // No shell would continue it: it waits for keys that never come.
        }
        give_keyboard();
    }

    void give_keyboard()
    {
        asked_by_ = 0;
        link_->give_keyboard();
        tell_runner(ContinueAgent{true});
    }

    // True when it must read keys again.
    bool watch_background()
    {
        if (!input_.terminal->in_foreground()) return false;
        give_keyboard();
        return true;
    }

    void come_back()
    {
        if (link_) link_->resume();
        tell_runner(ContinueAgent{link_ && link_->has_keyboard() && input_.terminal->in_foreground()});
    }

    // A dead terminal ends the session: HUP first, then our silence.
    void watch_terminal()
    {
        if (!link_ || !link_->is_dead() || hung_up_ || ended_) return;
        hung_up_ = true;
        tell_runner(ForwardSignal{SIGHUP});
        deadline_ = in_seconds(hang_up_patience_seconds);
    }

    // sudo is gone but the runner may live (kill -9 of sudo): our silence ends the session, and the runner's last word is waited for.
    void leave()
    {
        if (leaving_) return;
        leaving_ = true;
        deadline_ = in_seconds(farewell_patience_seconds);
        shutdown(peer_->channel().get(), SHUT_WR);
    }

    [[nodiscard]] int patience() const
    {
        if (ended_) return last_output_interval_milliseconds;
        // A shell that puts a running job into the foreground does not say so.
        if (!deadline_) return link_ && link_->is_waiting_for_foreground() ? foreground_interval_milliseconds : -1;
        return milliseconds_left(*deadline_);
    }

    void give_up_waiting()
    {
        if (!deadline_ || Clock::now() < *deadline_) return;
        if (!leaving_) return leave();
        throw Failure(FailureKind::runner_ended,
                      "sudo ended and the runner does not answer; pgrep -a pi-agent shows whether it still runs");
    }

    ClientInput input_;
    std::string &session_;
    ProgressLine progress_;
    JobSignals signals_;
    std::unique_ptr<SessionPeer> peer_;
    std::optional<TerminalLink> link_; // after the terminal it refers to
    std::optional<AgentEnded> ended_;
    std::optional<Deadline> deadline_;
    StartUpMemory memory_;
    int asked_by_ = 0; // the signal that stopped an agent which asked for the terminal, until it is answered
    bool stop_asked_ = false;
    bool leaving_ = false;
    bool hung_up_ = false;
};

} // namespace

AgentEnded run_client(ClientInput input, std::string &session)
{
    return Client(std::move(input), session).run();
}

void end_as(const AgentEnded &ended)
{
    if (!ended.by_signal) _exit(ended.value);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(ended.value, SIG_DFL);
    // This one alone: another that is pending must not come first.
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, ended.value);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    kill(getpid(), ended.value);
    _exit(128 + ended.value);
}

} // namespace pi_agent
