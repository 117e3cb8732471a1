// Between the runner of a node and the carrier.
#include "common/base/build_settings.hpp"

#include "wrapper/aftermath.hpp"

#include <sys/socket.h>
#include <sys/utsname.h>

#include <cstdlib>

namespace pi_agent {

namespace {

constexpr int hello_patience_seconds = 60;
constexpr int sending_patience_seconds = 10;
constexpr int finish_interval_milliseconds = 50;

constexpr const char *by_hand = "--pi-agent-on-node is pi's own option, for a job that pi asked for; type pi without it";

std::string message_of(const RunnerMessage &message)
{
    return relayed_tag + encode(message);
}

class NodeSession {
public:
    NodeSession(Tunnel &tunnel, const Request &request, FdRef cwd, SessionId &session) : tunnel_(tunnel), session_(session)
    {
        std::array<UniqueFd, 3> theirs;
        for (int fd = 0; fd < 3; ++fd) {
            if (const auto index = static_cast<std::size_t>(fd); !request.on_terminal.at(index)) theirs.at(index) = open_stream(fd);
        }
        try {
            send_request(runner_.channel(), request, cwd, {theirs[0].get(), theirs[1].get(), theirs[2].get()},
                         in_seconds(asking_patience_seconds));
        } catch (const SystemFailure &) { // the runner has refused already; its word is on the way
        } catch (const DeadlineExceeded &) {
        }
    }

    AgentEnded run()
    {
        while (!ended_ || !(tunnel_.has_read_all() || tunnel_.has_ended() || nobody_waits_))
            step();
        runner_.require_orderly_end();
        return *ended_;
    }

private:
    UniqueFd open_stream(int fd)
    {
        Pipe pipe = make_pipe();
        const bool is_input = fd == STDIN_FILENO;
        tunnel_.attach(static_cast<Stream>(fd), is_input ? Tunnel::Way::there_to_here : Tunnel::Way::here_to_there,
                       std::make_unique<DescriptorEnd>(std::move(is_input ? pipe.writing : pipe.reading),
                                                       is_input ? DescriptorEnd::For::writing : DescriptorEnd::For::reading));
        return std::move(is_input ? pipe.reading : pipe.writing);
    }

    void step()
    {
        std::vector<pollfd> waits = {{ended_ ? -1 : runner_.channel().get(), POLLIN, 0}, {signals_.fd().get(), POLLIN, 0}};
        tunnel_.add_waits(waits);
        const int patience = ended_ ? finish_interval_milliseconds : milliseconds_left(deadline_);
        if (poll(waits.data(), waits.size(), Tunnel::patience(patience)) < 0 && errno != EINTR) throw_errno("waiting for the runner");
        serve();
        if (waits[1].revents != 0) hear_signals();
        if (!ended_ && waits[0].revents != 0) hear_runner();
        if (tunnel_.has_ended()) leave();
        if (!ended_ && Clock::now() >= deadline_)
            throw Failure(FailureKind::runner_ended, "the runner does not answer; pgrep -a pi-agent shows whether it still runs");
    }

    void serve()
    {
        tunnel_.serve([this](const std::string &message) { hear_carrier(message); });
    }

    void hear_carrier(const std::string &message)
    {
        if (message.starts_with(left_tag)) return leave();
        if (!message.starts_with(relayed_tag)) throw ProtocolError("the wrapper says what nobody understands");
        const WrapperMessage said = decode_wrapper_message(std::string_view(message).substr(1));
        const auto *signal = std::get_if<ForwardSignal>(&said);
        if (ended_ && signal != nullptr && asks_for_end(signal->number)) nobody_waits_ = true; // for the rest of the output
        tell(runner_.channel(), encode(said));
    }

    // Our silence ends the session, and the runner's last word is waited for.
    void leave()
    {
        if (deadline_ != Deadline::max()) return;
        deadline_ = in_seconds(farewell_patience_seconds);
        shutdown(runner_.channel().get(), SHUT_WR);
    }

    void hear_runner()
    {
        std::optional<Packet> packet = receive_packet(runner_.channel(), in_seconds(1));
        if (!packet) {
            runner_.wait_for_end();
            runner_.explain_silence();
        }
        serve(); // what the agent wrote before
        const RunnerMessage message = decode_runner_message(packet->bytes);
        if (const auto *failure = std::get_if<FailureReport>(&message)) throw Failure(failure->status, failure->kind, failure->text);
        if (const auto *begun = std::get_if<SessionBegun>(&message)) session_ = begun->id;
        if (const auto *ended = std::get_if<AgentEnded>(&message)) {
            ended_ = *ended; // told behind all output
            return tunnel_.finish();
        }
        if (std::holds_alternative<TerminalOpened>(message)) {
            if (packet->fds.size() != 1) throw ProtocolError("the runner opened a terminal without one");
            tunnel_.attach(Stream::terminal, Tunnel::Way::both, std::make_unique<PtyEnd>(std::move(packet->fds[0])));
        }
        tunnel_.say(message_of(message));
    }

    // Those that Slurm or the cluster's people send to the job.
    void hear_signals()
    {
        for (JobSignals::Signal signal = signals_.next(); signal.number != 0; signal = signals_.next()) {
            if (signal.number == SIGCHLD) {
                runner_.reap();
                if (runner_.has_ended() && !ended_) leave();
            } else if (is_forwarded_signal(signal.number) && signal.number != SIGTSTP) {
                tell(runner_.channel(), encode(ForwardSignal{signal.number, false}));
            }
        }
    }

    Tunnel &tunnel_;
    SessionId &session_;
    JobSignals signals_;
    RunnerProcess runner_;
    std::optional<AgentEnded> ended_;
    Deadline deadline_ = Deadline::max();
    bool nobody_waits_ = false;
};

// What the first message with this tag says; nothing at the end of the tunnel, or after so many seconds.
std::optional<std::string> wait_for(Tunnel &tunnel, char tag, int seconds)
{
    std::optional<std::string> said;
    const Deadline deadline = in_seconds(seconds);
    while (!said && !tunnel.has_ended() && Clock::now() < deadline) {
        std::vector<pollfd> waits;
        tunnel.add_waits(waits);
        poll(waits.data(), waits.size(), milliseconds_left(deadline));
        tunnel.serve([&](const std::string &message) {
            if (!said && message.starts_with(tag)) said = message.substr(1);
        });
    }
    return said;
}

std::string name_of_node()
{
    utsname facts{};
    return uname(&facts) == 0 ? facts.nodename : "";
}

// As who carries it said.
Request take_over(const Hello &hello)
{
    const std::string node = escape_for_display(name_of_node());
    if (hello.version != build::version)
        throw Failure(FailureKind::no_node, "the node " + node + " has pi-agent " + build::version + ", and this host has " +
                                                escape_for_display(hello.version) +
                                                "; ask the administrator to install one version on both");
    if (chdir(hello.directory.c_str()) != 0)
        throw EarlyRefusal(
            Failure(FailureKind::directory, std::string("denied: ") + SystemFailure(errno, escape_for_display(hello.directory)).what() +
                                                " on the node " + node +
                                                ", where this session would run; work in a directory that the whole cluster has"));
    return decode_request(hello.request);
}

bool is_pipe(int fd)
{
    struct stat facts {};
    return fstat(fd, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode));
}

// Standard input and output are nobody's here: everything that this process starts has others.
Tunnel take_tunnel()
{
    if (!is_pipe(STDIN_FILENO) || !is_pipe(STDOUT_FILENO)) throw Failure(FailureKind::by_hand, by_hand); // as srun gives them
    UniqueFd in = duplicate(FdRef(STDIN_FILENO));
    UniqueFd out = duplicate(FdRef(STDOUT_FILENO));
    if (!in || !out) throw_errno("taking over standard input and output");
    let_go_of_input_and_output();
    return Tunnel(std::move(in), std::move(out));
}

// srun would have ended the job, and Slurm leaves one whose srun was killed as it is.
void end_own_job(const Hello &hello)
{
    const char *job = std::getenv("SLURM_JOB_ID");
    if (job != nullptr) execl(hello.scancel.c_str(), "scancel", "--quiet", job, static_cast<char *>(nullptr)); // best_effort
}

} // namespace

int serve_node()
{
    signal(SIGPIPE, SIG_IGN);
    Tunnel tunnel = take_tunnel();
    Program program = Program::agent;
    Hello hello;
    bool is_heard = false;
    // Waits until the last message is heard: who ended before, with something unread, would reset Slurm's connection to srun, and what is
    // on its way there would be lost (RFC 2525, 2.17).
    const auto say_last = [&](const RunnerMessage &message) {
        tunnel.say(message_of(message));
        is_heard = wait_for(tunnel, heard_tag, sending_patience_seconds).has_value();
    };
    try {
        const auto said = wait_for(tunnel, hello_tag, hello_patience_seconds);
        if (!said) throw Failure(FailureKind::by_hand, by_hand);
        hello = decode_fields<Hello>(*said);
        const Request request = take_over(hello);
        program = request.program;
        tunnel.say(hello_tag + name_of_node());
        const UniqueFd cwd = open_cwd();
        run_watched(refuse_early(cwd, asked_by(request)), program, [&](SessionId &session) {
            const AgentEnded ended = NodeSession(tunnel, request, cwd, session).run();
            say_last(ended);
            return ended;
        });
    } catch (const EarlyRefusal &refusal) {
        record_refusal(refusal, program);
        say_last(report_of(refusal));
    } catch (const Failure &failure) {
        say_last(report_of(failure));
    }
    if (!is_heard && tunnel.has_ended()) end_own_job(hello);
    return 0;
}

} // namespace pi_agent
