// The wrapper's side of a session.
#include "wrapper/session_client.hpp"

#include "common/base/files.hpp"
#include "common/base/terminal_text.hpp"
#include "common/seams/seams.hpp"

#include <sys/socket.h>

namespace pi_agent {

void let_go_of_input_and_output()
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0)
        throw_errno("letting go of standard input and output");
}

namespace {

constexpr int foreground_interval_milliseconds = 200;
constexpr int last_output_interval_milliseconds = 50;
constexpr int hang_up_patience_seconds = 3;
constexpr int peers_end_patience_seconds = 5; // for a sudo whose command has ended: it closes the session of PAM and writes its log

// The runner of this host, or a carrier for the job.
std::unique_ptr<SessionPeer> reach_peer(const std::optional<JobCommand> &job)
{
    if (job) return start_carrier(*job);
    return std::make_unique<RunnerProcess>();
}

constexpr int silence_seconds = 2;
constexpr const char *remedy_of_sudo = "; if it goes on, ask the administrator to run: sudo pi-agentctl doctor";
constexpr const char *remedy_of_others = "; if it goes on, ask the administrator to read: journalctl -t pi-agent-runner";

// What a start waits for: a line on the terminal where it is known to take long, and a sentence for every user after two seconds.
class StartWatch {
public:
    // `first`: what is waited for until the runner says something.
    explicit StartWatch(const std::string &first) : doing_("waiting for " + first) {}

    // `is_seen`: the job has no terminal, or has it in the foreground. In the background a line belongs to the shell.
    void hear(const Preparing &preparing, bool is_seen)
    {
        const bool is_news = preparing.doing != doing_ || !has_heard_;
        has_heard_ = true;
        if (is_news && due_ != Deadline::max()) due_ = in_seconds(silence_seconds);
        doing_ = preparing.doing;
        takes_long_ = preparing.takes_long;
        if (takes_long_ && is_seen) line_.show(doing_);
    }
    // Something else is about to be written.
    void clear() { line_.clear(); }
    void end()
    {
        line_.clear();
        due_ = Deadline::max();
        has_heard_ = true;
    }
    // When to look though nothing is heard.
    [[nodiscard]] Deadline due() const noexcept { return due_; }
    void look(bool is_seen)
    {
        if (Clock::now() < due_) return;
        due_ = Deadline::max(); // once
        if (!is_seen) return;
        line_.clear();
        tell(doing_ + ": two seconds without progress; Ctrl-C or kill " + std::to_string(getpid()) + " ends pi" +
             (takes_long_  ? ""
              : has_heard_ ? remedy_of_others
                           : remedy_of_sudo));
    }
    [[nodiscard]] bool has_heard() const noexcept { return has_heard_; }

private:
    std::string doing_;
    ProgressLine line_;
    Deadline due_ = in_seconds(silence_seconds);
    bool has_heard_ = false;
    bool takes_long_ = false; // known to, and so nothing is wrong
};

// What the wrapper says to its peer: the request, then messages. Never waits for it: sudo may not have started the runner yet.
class ToPeer {
public:
    // Borrows the descriptors until the first go_on(): a fresh socket always takes the packet that carries them.
    ToPeer(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, FdRef connections)
        : channel_(channel), bytes_(encode_request(request)), request_(bytes_, descriptors_of(request, cwd, stdio, connections))
    {
    }
    ToPeer(const ToPeer &) = delete;
    ToPeer &operator=(const ToPeer &) = delete;
    ~ToPeer() = default;

    // Sends what the peer takes of the request now.
    void go_on()
    {
        try {
            request_.send(channel_, Clock::now());
        } catch (const DeadlineExceeded &) { // the rest later
            return;
        } catch (const SystemFailure &) { // NOLINT(bugprone-empty-catch): the runner has refused already; its word is on the way
        }
        has_asked_ = true;
        for (const auto &message : std::exchange(untold_, {}))
            pi_agent::tell(channel_, encode(message));
    }
    [[nodiscard]] bool has_asked() const noexcept { return has_asked_; }

    // After the request.
    void tell(const WrapperMessage &message)
    {
        if (has_asked_)
            pi_agent::tell(channel_, encode(message));
        else
            untold_.push_back(message);
    }

private:
    FdRef channel_;
    const std::string bytes_;
    OutgoingRecord request_;
    std::vector<WrapperMessage> untold_;
    bool has_asked_ = false;
};

class Client {
public:
    Client(ClientInput input, SessionId &session)
        : input_(std::move(input)), session_(session), peer_(reach_peer(input_.job)), start_(peer_->name()),
          to_peer_(peer_->channel(), input_.request, input_.cwd, input_.stdio, input_.ports.for_session())
    {
    }

    AgentEnded run()
    {
        fault_point("asking");
        to_peer_.go_on();
        fault_point("asked");
        input_.ports.let_go_of_session_end();
        let_go_of_input_and_output();
        try {
            while (!asked_end_.is_over() && (!ended_ || (link_ && !link_->is_drained() && !link_->is_dead())))
                step();
        } catch (const Failure &) { // the agent may have run for long before that
            let_go_of_terminal();
            bid_farewell();
            throw;
        }
        let_go_of_terminal();
        if (asked_end_.is_over()) return asked_end_.tell(*peer_, start_.has_heard() && !is_silent_, session_);
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
        const auto events = static_cast<short>(to_peer_.has_asked() ? POLLIN : POLLIN | POLLOUT);
        waits.push_back(pollfd{ended_ || is_silent_ ? -1 : peer_->channel().get(), events, 0});
        waits.push_back(pollfd{signals_.fd().get(), POLLIN, 0});
        if (poll(waits.data(), waits.size(), memory_.patience(patience())) < 0 && errno != EINTR) throw_errno("waiting for the runner");
        memory_.look();
        // Before the agent's output: a full-screen program's must not be drawn over the shell's.
        if (link_ && link_->is_waiting_for_foreground() && input_.terminal->in_foreground()) return give_keyboard();
        if (link_) link_->serve(waits);
        if (waits[3].revents != 0) hear_signals();
        if (!to_peer_.has_asked() && waits[2].revents != 0) to_peer_.go_on();
        if (!ended_ && !is_silent_ && (waits[2].revents & ~POLLOUT) != 0) hear_runner();
        if (!ended_) look_at_clock();
        if (link_ && !ended_ && input_.terminal->in_foreground() && link_->keyboard_was_taken()) give_keyboard();
        watch_terminal();
    }

    void hear_runner()
    {
        std::optional<Packet> packet = receive_packet(peer_->channel(), in_seconds(1));
        const RunnerMessage message = packet ? decode_runner_message(packet->bytes) : RunnerMessage(Notice{});
        if (const auto *preparing = std::get_if<Preparing>(&message)) return start_.hear(*preparing, is_seen());
        if (std::holds_alternative<SignalHeard>(message)) return asked_end_.answered();
        if (const auto *begun = std::get_if<SessionBegun>(&message)) {
            start_.end();
            session_ = begun->id;
            input_.ports.serve();
            memory_.wait_begins();
            return;
        }
        start_.clear();
        if (!packet) return lose_peer();
        if (const auto *failure = std::get_if<FailureReport>(&message)) throw Failure(failure->status, failure->kind, failure->text);
        if (const auto *notice = std::get_if<Notice>(&message)) return show(notice->text);
        if (const auto *ended = std::get_if<AgentEnded>(&message)) {
            ended_ = *ended;
            start_.end();
            if (link_) link_->finish();
        } else if (const auto *stopped = std::get_if<AgentStopped>(&message)) {
            if (link_ && asks_for_terminal(*stopped))
                asked_by_ = stopped->number;
            else
                stop_with_agent();
        } else if (std::holds_alternative<TerminalOpened>(message) && input_.terminal && !link_ && packet->fds.size() == 1) {
            link_.emplace(*input_.terminal, open_session_terminal(std::move(packet->fds[0])), input_.reaches_clipboard);
            // A shell is for somebody at the keyboard, and shows and asks more in the foreground.
            const bool at_once =
                input_.request.program == Program::shell && input_.terminal->has_input() && input_.terminal->in_foreground();
            if (at_once) link_->give_keyboard();
            to_peer_.tell(TerminalReady{at_once});
        }
    }

    // No user waits for what runs in the background.
    [[nodiscard]] bool is_seen() const { return !input_.terminal || input_.terminal->in_foreground(); }

    // It ends next, and then its exit status says why.
    void lose_peer()
    {
        let_go_of_terminal(); // first, then the words
        if (peer_->has_ended()) peer_->explain_silence();
        is_silent_ = true;
        deadline_ = in_seconds(peers_end_patience_seconds);
    }

    void show(const std::string &text)
    {
        const bool raw = input_.terminal && input_.terminal->is_output_raw() && input_.terminal->on_terminal()[2];
        // Root's words: names in them are escaped already.
        tell(text, false, raw);
    }

    void hear_signals()
    {
        for (JobSignals::Signal signal = signals_.next(); signal.number != 0; signal = signals_.next()) {
            if (signal.number == SIGCHLD) {
                peer_->reap();
                if (peer_->has_ended() && is_silent_) peer_->explain_silence();
                if (peer_->has_ended() && !ended_) leave();
            } else if (signal.number == SIGWINCH) {
                if (link_) link_->resize();
            } else if (signal.number == SIGCONT) {
                come_back();
            } else {
                if (ended_ && link_) return link_.reset(); // only a terminal that nobody reads is still waited for: the user has had enough
                stop_asked_ = stop_asked_ || signal.number == SIGTSTP;
                if (asks_for_end(signal.number)) asked_end_.ask(signal.number);
                to_peer_.tell(ForwardSignal{signal.number, signal.from_keyboard});
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
        peer_->bid_farewell(signals_.fd(), [this] {
            bool has_had_enough = false;
            for (JobSignals::Signal signal = signals_.next(); signal.number != 0; signal = signals_.next())
                has_had_enough = has_had_enough || asks_for_end(signal.number);
            return has_had_enough;
        });
    }

    // The agent has stopped: so does the user's job, with the terminal as the shell left it, until fg or bg.
    void stop_with_agent()
    {
        // Without a terminal only who stopped us would continue us: an agent that stops by itself must not stop its caller's script.
        if (!link_ && !stop_asked_) return to_peer_.tell(ContinueAgent{});
        stop_asked_ = false;
        if (link_) link_->suspend();
        signals_.stop_job(SIGTSTP); // where nothing stops (no shell would continue us) the agent goes on at once
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
        to_peer_.tell(ContinueAgent{true});
    }

    void come_back()
    {
        if (link_) link_->resume();
        to_peer_.tell(ContinueAgent{link_ && link_->has_keyboard() && input_.terminal->in_foreground()});
    }

    // A dead terminal ends the session: HUP first, then our silence.
    void watch_terminal()
    {
        if (!link_ || !link_->is_dead() || hung_up_ || ended_) return;
        hung_up_ = true;
        asked_end_.ask(SIGHUP);
        to_peer_.tell(ForwardSignal{SIGHUP});
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
        const int look = link_ && link_->is_waiting_for_foreground() ? foreground_interval_milliseconds : -1;
        const Deadline until = std::min({start_.due(), asked_end_.due(), deadline_});
        if (until == Deadline::max()) return look;
        return look < 0 ? milliseconds_left(until) : std::min(look, milliseconds_left(until));
    }

    void look_at_clock()
    {
        start_.look(is_seen());
        if (Clock::now() < std::min(asked_end_.due(), deadline_)) return;
        if (!is_silent_ && wait_for_input(peer_->channel(), Clock::now())) return; // this process is the late one
        asked_end_.look();
        if (asked_end_.is_over() || Clock::now() < deadline_) return;
        if (is_silent_) peer_->explain_silence();
        if (!leaving_) return leave();
        throw Failure(FailureKind::runner_ended,
                      "sudo ended and the runner does not answer; pgrep -a pi-agent shows whether it still runs");
    }

    ClientInput input_;
    SessionId &session_;
    JobSignals signals_;
    std::unique_ptr<SessionPeer> peer_;
    StartWatch start_;
    ToPeer to_peer_;
    bool is_silent_ = false;           // the peer has closed the channel, and is about to end
    std::optional<TerminalLink> link_; // after the terminal it refers to
    std::optional<AgentEnded> ended_;
    Deadline deadline_ = Deadline::max();
    AskedEnd asked_end_;
    StartUpMemory memory_;
    int asked_by_ = 0; // the signal that stopped an agent which asked for the terminal, until it is answered
    bool stop_asked_ = false;
    bool leaving_ = false;
    bool hung_up_ = false;
};

} // namespace

AgentEnded run_client(ClientInput input, SessionId &session)
{
    return Client(std::move(input), session).run();
}

void tell(const std::string &line, bool is_failure, bool raw)
{
    const auto terminal = text_terminal(STDERR_FILENO);
    const std::string text = (is_failure ? as_failure("pi:", terminal) : "pi:") + " " + line + "\n";
    std::string shown;
    for (const char byte : terminal ? fitted(text, *terminal) : text)
        shown += raw && byte == '\n' ? "\r\n" : std::string(1, byte);
    say(shown);
}

void tell_lines(const std::string &lines)
{
    const auto terminal = text_terminal(STDERR_FILENO);
    say(terminal ? fitted(lines, *terminal) : lines);
}

} // namespace pi_agent
