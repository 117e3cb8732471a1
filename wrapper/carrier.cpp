// Asks for a node, and passes on what wrapper and node say.

#include "common/base/build_settings.hpp"
#include "common/base/files.hpp"
#include "common/decide/explained.hpp"
#include "wrapper/session_client.hpp"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace pi_agent {

void tell(FdRef channel, std::string_view message) noexcept
{
    try {
        send_packet(channel, message, {}, in_seconds(1));
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): said in the header
    }
}

bool keep_only(int channel) noexcept
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return null >= 0 && place_descriptors({null, null, null, channel}) && close_range(4, ~0U, 0) == 0 &&
           fcntl(3, F_SETFD, FD_CLOEXEC) == 0 && setsid() >= 0;
}

Came wait_for_either(FdRef input, FdRef impatience, Deadline deadline)
{
    for (;;) {
        std::array<pollfd, 2> waits = {pollfd{input.get(), POLLIN, 0}, pollfd{impatience.get(), POLLIN, 0}};
        const int ready = poll(waits.data(), waits.size(), milliseconds_left(deadline));
        if (ready < 0 && errno != EINTR) throw_errno("waiting for the end");
        if (ready > 0) return waits[1].revents != 0 ? Came::impatience : Came::input;
        if (Clock::now() >= deadline) return Came::nothing;
    }
}

namespace {

constexpr auto queue_silence = std::chrono::milliseconds(500); // longer, and the terminal says what is waited for
constexpr int way_patience_seconds = 5;                        // to the node and back, beside what the runner there takes
constexpr const char *waiting_words = "waiting for a node of the cluster (Ctrl-C gives up)";

constexpr std::size_t said_limit = 64UL * 1024;
constexpr int end_patience_seconds = 5;
constexpr int exec_failed = 127;

// Nothing else of the caller's shell leaves it: a job's variables are kept by others, and those of Slurm's that the caller has would change
// how the task's output comes, or put it into another job.
std::vector<std::string> environment_of_srun()
{
    std::vector<std::string> variables = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    for (const char *name : {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "KRB5CCNAME", "SLURM_CONF"})
        if (const char *value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
    return variables;
}

// However often they were escaped before.
std::string harmless_lines(std::string_view lines)
{
    std::string text;
    for (const auto line : split(lines, '\n'))
        text += (line.data() == lines.data() ? "" : "\n") + escape_for_display(without_escapes(line));
    return text;
}

// A message of the node's for this host's wrapper: unlike this host's runner, whatever runs there is heard, so texts become harmless.
std::string harmless_message(RunnerMessage message)
{
    const auto clean = [](auto &said) {
        if constexpr (requires { said.text; }) said.text = harmless_lines(said.text);
        if constexpr (requires { said.doing; }) said.doing = harmless_lines(said.doing);
    };
    std::visit(clean, message);
    return encode(message);
}

// srun as a child of the carrier's: asks for a job, and connects its task's input and output with two pipes.
class SrunProcess {
public:
    // It ends when this process does. Throws Failure(no_node) if it cannot be started.
    explicit SrunProcess(const JobCommand &command)
    {
        if (access(command.program.c_str(), X_OK) != 0)
            throw Failure(FailureKind::no_node,
                          std::string(SystemFailure(errno, "starting " + command.program).what()) +
                              ": sessions run in jobs of the cluster, and this asks for one; ask the administrator to "
                              "install Slurm's client on this host, or to correct placement.srun");
        std::vector<std::string> texts = {command.program};
        texts.insert(texts.end(), command.arguments.begin(), command.arguments.end());
        const std::vector<std::string> variables = environment_of_srun();
        const std::vector<char *> arguments = exec_pointers(texts);
        const std::vector<char *> environment = exec_pointers(variables);
        Pipe input = make_pipe();
        Pipe output = make_pipe();
        Pipe error = make_pipe(O_NONBLOCK);
        const pid_t parent = getpid();
        pid_ = fork();
        if (pid_ < 0) throw_errno("starting srun");
        if (pid_ == 0) {
            const bool ready = place_descriptors({input.reading.get(), output.writing.get(), error.writing.get()}) && restore_signals() &&
                               prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0 && getppid() == parent;
            if (ready) execve(command.program.c_str(), arguments.data(), environment.data());
            dprintf(STDERR_FILENO, "%s: %s\n", command.program.c_str(), std::strerror(errno));
            _exit(exec_failed);
        }
        input_ = std::move(input.writing);
        output_ = std::move(output.reading);
        error_ = std::move(error.reading);
    }

    [[nodiscard]] UniqueFd take_input() noexcept { return std::move(input_); }   // what is written is the task's input
    [[nodiscard]] UniqueFd take_output() noexcept { return std::move(output_); } // the task's output
    [[nodiscard]] FdRef error() const noexcept { return error_; }

    // Reads what it, or the task, says on standard error, and closes that at its end.
    void hear_error()
    {
        std::array<char, 4096> buffer{};
        const ssize_t count = error_ ? read(error_.get(), buffer.data(), buffer.size()) : 0;
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) return error_.reset();
        if (said_.size() < said_limit) said_.append(buffer.data(), static_cast<std::size_t>(count));
    }

    // Takes the request for a job back.
    void cancel()
    {
        const pid_t process = std::exchange(pid_, -1); // once: then its number may be another process's
        if (process < 0) return;
        kill(process, SIGTERM);
        const Deadline deadline = in_seconds(end_patience_seconds);
        while (waitpid(process, nullptr, WNOHANG) == 0) {
            if (Clock::now() >= deadline) kill(process, SIGKILL);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    // It ends by itself: its words for a message, with a colon before them, or nothing.
    std::string explain_end()
    {
        std::string words;
        wait_for_end(in_seconds(end_patience_seconds), FdRef(-1));
        const std::string said = std::exchange(said_, {}); // once
        for (auto line : split(said, '\n')) {
            for (const std::string_view beginning : {"srun: ", "error: ", "fatal: "})
                if (line.starts_with(beginning)) line.remove_prefix(beginning.size());
            if (!line.empty()) words += (words.empty() ? ": " : " | ") + escape_for_display(line);
        }
        return words;
    }

    // All that was said, harmless, once it has ended, by the deadline or until `impatience` can be read.
    std::string wait_for_end(Deadline deadline, FdRef impatience)
    {
        while (error_ && wait_for_either(error_, impatience, deadline) == Came::input)
            hear_error();
        return harmless_lines(said_);
    }

private:
    UniqueFd input_;
    UniqueFd output_;
    UniqueFd error_;
    pid_t pid_ = -1;
    std::string said_;
};

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
        if (poll(waits.data(), waits.size(),
                 Tunnel::patience(milliseconds_left(std::min(deadline_, begun_ ? Deadline::max() : shown_at_)))) < 0 &&
            errno != EINTR)
            throw_errno("waiting for the node");
        if (waits[1].revents != 0) job_.hear_error();
        tunnel_.serve([this](const std::string &message) { hear_node(message); });
        if (waits[0].revents != 0) hear_wrapper();
        if (!begun_ && Clock::now() >= shown_at_) show_waiting();
        if (last_ && tunnel_.has_written_all()) return hand_last_over();
        if (tunnel_.has_ended() && !last_) return lose_node();
        if (Clock::now() >= deadline_) is_over_ = true; // the job ends with this process
    }

    void attach(Stream stream, UniqueFd &fd, Tunnel::Way way, DescriptorEnd::For purpose)
    {
        if (fd) tunnel_.attach(stream, way, std::make_unique<DescriptorEnd>(std::move(fd), purpose));
    }

    void show_waiting()
    {
        shown_at_ = Deadline::max();
        tell(encode(Preparing{waiting_words}));
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
            if (shown_at_ == Deadline::max()) tell(encode(Preparing{"starting on " + node_}));
            for (const auto &early : std::exchange(early_, {}))
                tunnel_.say(relayed_tag + early);
            return;
        }
        if (!message.starts_with(relayed_tag)) throw ProtocolError("the node says what nobody understands");
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
        tunnel_.say(relayed_tag + packet->bytes);
    }

    // There is no session yet: what is for it waits, but to stop and to end is for the wait itself.
    void wait_on(const WrapperMessage &message, const std::string &bytes)
    {
        const auto *signal = std::get_if<ForwardSignal>(&message);
        if (signal != nullptr && asks_for_end(signal->number)) {
            job_.cancel();
            tell(encode(AgentEnded{true, signal->number}));
            is_over_ = true;
        } else if (signal != nullptr && signal->number == SIGTSTP) {
            tell(encode(AgentStopped{SIGTSTP}));
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
            tunnel_.say(std::string(1, left_tag));
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
        tell(encode(report_of(failure)));
    }

    void tell_last_words()
    {
        const std::string words = job_.wait_for_end(in_seconds(farewell_patience_seconds + way_patience_seconds), channel_);
        if (!words.empty()) tell(encode(Notice{words}));
    }

    FdRef channel_;
    ReceivedRequest asked_;
    SrunProcess job_;
    Tunnel tunnel_;
    std::vector<std::string> early_;
    Deadline shown_at_; // when the terminal says that a node is waited for
    Deadline deadline_ = Deadline::max();
    std::optional<std::string> last_; // the last message, until the output is written
    std::string node_;
    bool begun_ = false;
    bool wrapper_is_gone_ = false;
    bool is_over_ = false;
};

[[noreturn]] void become_carrier(const UniqueFd &channel, const JobCommand &command)
{
    if (!keep_only(channel.get()) || !restore_signals() || signal(SIGPIPE, SIG_IGN) == SIG_ERR) _exit(1);
    const FdRef own(3);
    try {
        Carrier(own, command).run();
    } catch (const Failure &failure) {
        pi_agent::tell(own, encode(report_of(failure)));
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the wrapper sees the end, and says so
    }
    _exit(0);
}

class CarrierProcess : public SessionPeer {
public:
    explicit CarrierProcess(const JobCommand &command)
    {
        auto [own, theirs] = make_channel();
        pid_ = fork();
        if (pid_ < 0) throw_errno("starting the process that carries the session");
        if (pid_ == 0) become_carrier(theirs, command);
        channel_ = std::move(own);
    }

    [[nodiscard]] std::string name() const override { return "the process of pi that asks for a node (" + std::to_string(pid_) + ")"; }
    [[nodiscard]] FdRef channel() const noexcept override { return channel_; }
    [[nodiscard]] bool has_ended() const noexcept override { return ended_; }

    void reap() override
    {
        if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    }

    void require_orderly_end() override
    {
        if (ended_ && WIFSIGNALED(status_))
            throw Failure(FailureKind::runner_ended, "the process of pi that carries the session was killed by signal " +
                                                         std::to_string(WTERMSIG(status_)) + "; the session ended with it");
    }

    [[noreturn]] void explain_silence() override
    {
        require_orderly_end();
        throw Failure(FailureKind::runner_ended, "the process of pi that carries the session ended without an answer" +
                                                     (ended_ ? " (status " + std::to_string(WEXITSTATUS(status_)) + ")" : ""));
    }

    void bid_farewell(FdRef signals, const std::function<bool()> &has_had_enough) override
    {
        for (;;) {
            const Came came = wait_for_either(channel_, signals, Deadline::max());
            if (came == Came::impatience && has_had_enough()) return;
            if (came != Came::input) continue;
            const std::optional<Packet> packet = receive_packet(channel_, in_seconds(1));
            if (!packet) return;
            const RunnerMessage message = decode_runner_message(packet->bytes);
            if (const auto *notice = std::get_if<Notice>(&message)) say(notice->text);
        }
    }

private:
    UniqueFd channel_;
    pid_t pid_ = -1;
    bool ended_ = false;
    int status_ = 0;
};

} // namespace

std::unique_ptr<SessionPeer> start_carrier(const JobCommand &command)
{
    return std::make_unique<CarrierProcess>(command);
}

} // namespace pi_agent
