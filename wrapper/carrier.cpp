// Asks for a node, and passes on what wrapper and node say.
#include "wrapper/carrier.hpp"

#include "common/as_user/user_paths.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/process.hpp"
#include "common/base/text.hpp"
#include "wrapper/start_watch.hpp"
#include "wrapper/tunnel.hpp"

#include <linux/close_range.h>
#include <sys/wait.h>

namespace pi_agent {

namespace {

constexpr auto queue_silence = std::chrono::milliseconds(500); // longer, and the terminal says what is waited for
constexpr int way_patience_seconds = 5;                        // to the node and back, beside what the runner there takes
constexpr const char *waiting_words = "waiting for a node of the cluster (Ctrl-C gives up)";

class Carrier {
public:
    Carrier(FdRef channel, const JobCommand &command)
        : channel_(channel), asked_(receive_request(channel, in_seconds(asking_patience_seconds))), job_(command),
          tunnel_(job_.take_output(), job_.take_input()), shown_at_(Clock::now() + queue_silence)
    {
        tunnel_.say(hello_tag + encode(Hello{build::version, path_of_working_directory(asked_.cwd), encode_request(asked_.request),
                                             join_path(parent_of(command.program), "scancel")}));
        attach(Stream::output, asked_.stdio[1], Tunnel::Way::there_to_here, DescriptorEnd::For::writing);
        attach(Stream::error, asked_.stdio[2], Tunnel::Way::there_to_here, DescriptorEnd::For::writing);
    }

    void run()
    {
        while (!is_over_)
            step();
        if (!wrapper_is_gone_) tell_last_words();
    }

private:
    void step()
    {
        std::vector<pollfd> waits = {{wrapper_is_gone_ ? -1 : channel_.get(), POLLIN, 0}, {job_.error().get(), POLLIN, 0}};
        tunnel_.add_waits(waits);
        if (poll(waits.data(), waits.size(), Tunnel::patience(patience())) < 0 && errno != EINTR) throw_errno("waiting for the node");
        if (waits[1].revents != 0) job_.hear_error();
        tunnel_.serve([this](const std::string &message) { hear_node(message); });
        if (waits[0].revents != 0) hear_wrapper();
        if (!begun_ && shown_at_ && Clock::now() >= *shown_at_) show_waiting();
        if (last_ && tunnel_.has_written_all()) return hand_last_over();
        if (tunnel_.has_ended() && !last_) return lose_node();
        if (deadline_ && Clock::now() >= *deadline_) is_over_ = true; // the job ends with this process
    }

    [[nodiscard]] int patience() const
    {
        if (deadline_) return milliseconds_left(*deadline_);
        return !begun_ && shown_at_ ? milliseconds_left(*shown_at_) : -1;
    }

    void attach(Stream stream, UniqueFd &fd, Tunnel::Way way, DescriptorEnd::For purpose)
    {
        if (fd) tunnel_.attach(stream, way, std::make_unique<DescriptorEnd>(std::move(fd), purpose));
    }

    void show_waiting()
    {
        shown_at_.reset();
        tell(encode(RunnerMessage(Preparing{waiting_words})));
    }

    void tell(std::string_view message, const std::vector<int> &fds = {})
    {
        if (wrapper_is_gone_) return;
        try {
            send_packet(channel_, message, fds, in_seconds(asking_patience_seconds));
        } catch (const Failure &) {
            lose_wrapper();
        }
    }

    void hear_node(const std::string &message)
    {
        const std::string rest = message.empty() ? "" : message.substr(1);
        if (message.starts_with(hello_tag)) {
            begun_ = true;
            // Not before: nobody there would take what is read.
            attach(Stream::input, asked_.stdio[0], Tunnel::Way::here_to_there, DescriptorEnd::For::reading);
            node_ = escape_for_display(rest);
            if (!shown_at_) tell(encode(RunnerMessage(Preparing{"starting on " + node_})));
            for (const auto &early : std::exchange(early_, {}))
                tunnel_.say(message_tag + early);
            return;
        }
        if (!message.starts_with(message_tag)) throw ProtocolError("the node says what nobody understands");
        const RunnerMessage said = decode_runner_message(rest);
        if (std::holds_alternative<AgentEnded>(said) || std::holds_alternative<FailureReport>(said)) {
            last_ = harmless_message(said); // behind all output
            tunnel_.say(std::string(1, heard_tag));
            tunnel_.fall_silent();
        } else if (std::holds_alternative<TerminalOpened>(said)) {
            auto ends = make_channel();
            tunnel_.attach(Stream::terminal, Tunnel::Way::both,
                           std::make_unique<DescriptorEnd>(std::move(ends.first), DescriptorEnd::For::packets));
            tell(rest, {ends.second.get()});
        } else {
            tell(harmless_message(said));
        }
    }

    void hear_wrapper()
    {
        std::optional<Packet> packet;
        try {
            packet = receive_packet(channel_, in_seconds(1));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): reset by its end
        }
        if (!packet) return lose_wrapper();
        const WrapperMessage message = decode_wrapper_message(packet->bytes);
        const auto *signal = std::get_if<ForwardSignal>(&message);
        if (last_ && signal != nullptr && asks_for_end(signal->number)) return hand_last_over(); // nobody reads the rest of the output
        if (!begun_) return wait_on(message, packet->bytes);
        tunnel_.serve([this](const std::string &said) { hear_node(said); }); // the terminal first: it was spoken to before
        tunnel_.say(message_tag + packet->bytes);
    }

    // There is no session yet: what is for it waits, but to stop and to end is for the wait itself.
    void wait_on(const WrapperMessage &message, const std::string &bytes)
    {
        const auto *signal = std::get_if<ForwardSignal>(&message);
        if (signal != nullptr && asks_for_end(signal->number)) {
            job_.cancel();
            tell(encode(RunnerMessage(AgentEnded{true, signal->number})));
            is_over_ = true;
        } else if (signal != nullptr && signal->number == SIGTSTP) {
            tell(encode(RunnerMessage(AgentStopped{SIGTSTP})));
        } else if (std::holds_alternative<ContinueAgent>(message)) {
            shown_at_ = Clock::now();
        } else {
            early_.push_back(bytes);
        }
    }

    // The session ends with its wrapper, as on this host.
    void lose_wrapper()
    {
        if (std::exchange(wrapper_is_gone_, true)) return;
        if (begun_) {
            tunnel_.say(std::string(1, gone_tag));
            deadline_ = in_seconds(farewell_patience_seconds + way_patience_seconds);
        } else {
            job_.cancel();
            is_over_ = true;
        }
    }

    void hand_last_over()
    {
        tell(*last_);
        is_over_ = true;
    }

    void lose_node()
    {
        const std::string said = job_.explain_end();
        is_over_ = true;
        const Failure failure =
            begun_
                ? Failure(FailureKind::runner_ended, "pi on the node " + node_ + " ended, and the session with it" + said +
                                                         "; the administrator finds more with: journalctl -t pi-agent-runner, on that node")
                : Failure(FailureKind::no_node,
                          "Slurm gave this session no node" + said + "; sinfo shows the cluster, and squeue --me your jobs");
        tell(encode(RunnerMessage(FailureReport{failure.status(), failure.what(), failure.kind()})));
    }

    void tell_last_words()
    {
        const std::string words = job_.wait_for_end(in_seconds(farewell_patience_seconds + way_patience_seconds), channel_);
        if (!words.empty()) tell(encode(RunnerMessage(Notice{words})));
    }

    FdRef channel_;
    ReceivedRequest asked_;
    SrunProcess job_;
    Tunnel tunnel_;
    std::vector<std::string> early_;
    std::optional<Deadline> shown_at_;
    std::optional<Deadline> deadline_;
    std::optional<std::string> last_; // the last message, until the output is written
    std::string node_;
    bool begun_ = false;
    bool wrapper_is_gone_ = false;
    bool is_over_ = false;
};

// The wrapper's descriptors are closed here: a pipe that is kept has no end for who reads it. The keyboard's signals are the wrapper's.
[[noreturn]] void become_carrier(const UniqueFd &channel, const JobCommand &command)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool ready = null >= 0 && place_descriptors({null, null, null, channel.get()}) && close_range(4, ~0U, 0) == 0 &&
                       fcntl(3, F_SETFD, FD_CLOEXEC) == 0 && setsid() >= 0 && restore_signals() && signal(SIGPIPE, SIG_IGN) != SIG_ERR;
    if (!ready) _exit(1);
    const FdRef own(3);
    try {
        Carrier(own, command).run();
    } catch (const Failure &failure) {
        try {
            send_packet(own, encode(RunnerMessage(FailureReport{failure.status(), failure.what(), failure.kind()})), {}, in_seconds(1));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the wrapper is gone
        }
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the wrapper sees the end, and says so
    }
    _exit(0);
}

} // namespace

CarrierProcess::CarrierProcess(const JobCommand &command)
{
    auto [own, theirs] = make_channel();
    pid_ = fork();
    if (pid_ < 0) throw_errno("starting the process that carries the session");
    if (pid_ == 0) become_carrier(theirs, command);
    channel_ = std::move(own);
}

void CarrierProcess::reap()
{
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
}

void CarrierProcess::require_orderly_end()
{
    if (ended_ && WIFSIGNALED(status_))
        throw Failure(FailureKind::runner_ended, "the process of pi that carries the session was killed by signal " +
                                                     std::to_string(WTERMSIG(status_)) + "; the session ended with it");
}

void CarrierProcess::explain_silence()
{
    require_orderly_end();
    throw Failure(FailureKind::runner_ended, "the process of pi that carries the session ended without an answer" +
                                                 (ended_ ? " (status " + std::to_string(WEXITSTATUS(status_)) + ")" : ""));
}

void CarrierProcess::bid_farewell(FdRef signals, const std::function<bool()> &has_had_enough)
{
    for (;;) {
        std::array<pollfd, 2> waits = {pollfd{channel_.get(), POLLIN, 0}, pollfd{signals.get(), POLLIN, 0}};
        if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
        if (waits[1].revents != 0 && has_had_enough()) return;
        if (waits[0].revents == 0) continue;
        const std::optional<Packet> packet = receive_packet(channel_, in_seconds(1));
        if (!packet) return;
        const RunnerMessage message = decode_runner_message(packet->bytes);
        if (const auto *notice = std::get_if<Notice>(&message)) say(notice->text);
    }
}

std::string encode(const Hello &hello)
{
    return Encoder().text(hello.version).text(hello.directory).text(hello.request).text(hello.scancel).bytes();
}

Hello decode_hello(std::string_view bytes)
{
    Decoder decoder(bytes);
    Hello hello{decoder.text(), decoder.text(), decoder.text(), decoder.text()};
    decoder.end();
    return hello;
}

} // namespace pi_agent
