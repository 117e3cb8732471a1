// Encoding of the request and of the messages between wrapper and runner.
#include "common/base/request.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <climits>
#include <csignal>

namespace pi_agent {

namespace {

constexpr std::uint64_t request_type = 1;
constexpr std::uint64_t failure_type = 2;
constexpr std::uint64_t notice_type = 3;
constexpr std::uint64_t ended_type = 4;
constexpr std::uint64_t signal_type = 5;
constexpr std::uint64_t terminal_opened_type = 6;
constexpr std::uint64_t stopped_type = 7;
constexpr std::uint64_t terminal_ready_type = 8;
constexpr std::uint64_t continue_type = 9;
constexpr std::uint64_t preparing_type = 10;
constexpr std::uint64_t begun_type = 11;

constexpr std::uint64_t signal_limit = 64;
constexpr std::size_t text_limit = 16UL * 1024; // of a message for the user

// pi-contract: what describes the terminal, and nothing that could reach into the agent.
constexpr std::string_view presentation_names =
    "TERM COLORTERM COLORFGBG LANG TERM_PROGRAM TERM_PROGRAM_VERSION TERMINAL_EMULATOR KITTY_WINDOW_ID GHOSTTY_RESOURCES_DIR WEZTERM_PANE "
    "ITERM_SESSION_ID ALACRITTY_WINDOW_ID WT_SESSION TMUX STY ZELLIJ SSH_CONNECTION SSH_CLIENT SSH_TTY NO_COLOR FORCE_COLOR VISUAL EDITOR "
    "TZ";
constexpr std::size_t presentation_limit = 24 + 32; // these, and some LC_

void check_argument(const std::string &argument)
{
    if (argument.find('\0') != std::string::npos && defence_is_on("nul-arguments")) throw ProtocolError("an argument contains a NUL byte");
}

void check_presentation(const std::string &assignment)
{
    const std::size_t equals = assignment.find('=');
    const bool known = equals != std::string::npos && is_presentation_variable(std::string_view(assignment).substr(0, equals));
    if (!known && defence_is_on("presentation-names"))
        throw ProtocolError("the request carries an environment variable that is never passed on");
    if (assignment.find('\0') != std::string::npos) throw ProtocolError("an environment value contains a NUL byte");
}

std::uint64_t bounded(Decoder &decoder, std::uint64_t limit, const char *what)
{
    const std::uint64_t value = decoder.number();
    if (value > limit) throw ProtocolError(std::string("a message carries an impossible ") + what);
    return value;
}

} // namespace

bool is_presentation_variable(std::string_view name) noexcept
{
    if (name.substr(0, 3) == "LC_")
        return name.size() > 3 && std::all_of(name.begin() + 3, name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    return has_word(presentation_names, name);
}

void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline)
{
    std::vector<int> descriptors = {cwd.get()};
    for (std::size_t index = 0; index < 3; ++index)
        if (!request.on_terminal[index]) descriptors.push_back(stdio[index]);
    send_record(channel, encode_request(request), descriptors, deadline);
}

Encoder &encode(Encoder &encoder, const OnTerminal &on_terminal)
{
    for (const bool one : on_terminal)
        encoder.number(one ? 1 : 0);
    return encoder;
}

std::string encode_request(const Request &request)
{
    Encoder encoder;
    encoder.number(request_type).texts(request.arguments).texts(request.presentation).number(request.umask);
    const WindowSize &window = request.window;
    encode(encoder, request.on_terminal).number(window.rows).number(window.columns).number(window.x_pixels).number(window.y_pixels);
    encoder.number(static_cast<std::uint64_t>(request.program)).text(request.tmpdir).number(request.debug ? 1 : 0);
    return encoder.bytes();
}

Request decode_request(std::string_view bytes)
{
    Decoder decoder(bytes);
    if (decoder.number() != request_type) throw ProtocolError("the first message is not a request");
    Request request;
    request.arguments = decoder.texts();
    request.presentation = decoder.texts(presentation_limit);
    request.umask = static_cast<unsigned>(bounded(decoder, 0777, "umask"));
    for (bool &on_terminal : request.on_terminal)
        on_terminal = bounded(decoder, 1, "terminal flag") == 1;
    for (std::uint16_t *field : {&request.window.rows, &request.window.columns, &request.window.x_pixels, &request.window.y_pixels})
        *field = static_cast<std::uint16_t>(bounded(decoder, 0xffff, "window size"));
    request.program = static_cast<Program>(bounded(decoder, static_cast<std::uint64_t>(Program::canary), "program"));
    request.tmpdir = decoder.text();
    request.debug = bounded(decoder, 1, "debug flag") == 1;
    decoder.end();
    if (request.tmpdir.size() >= PATH_MAX || request.tmpdir.find('\0') != std::string::npos)
        throw ProtocolError("the request carries an impossible path");
    std::for_each(request.arguments.begin(), request.arguments.end(), check_argument);
    std::for_each(request.presentation.begin(), request.presentation.end(), check_presentation);
    return request;
}

ReceivedRequest receive_request(FdRef channel, Deadline deadline)
{
    std::optional<Packet> record = receive_record(channel, deadline);
    if (!record) throw ProtocolError("the connection was closed before a request came");
    ReceivedRequest received;
    received.request = decode_request(record->bytes);
    const OnTerminal &on_terminal = received.request.on_terminal;
    const auto expected = static_cast<std::size_t>(1 + std::count(on_terminal.begin(), on_terminal.end(), false));
    if (record->fds.size() != expected && defence_is_on("descriptor-count"))
        throw ProtocolError("this request carries exactly " + std::to_string(expected) + " descriptors, this one has " +
                            std::to_string(record->fds.size()));
    auto next = record->fds.begin();
    const auto take = [&] { return next == record->fds.end() ? UniqueFd() : std::move(*next++); };
    received.cwd = take();
    for (std::size_t index = 0; index < 3; ++index)
        if (!on_terminal[index]) received.stdio[index] = take();
    return received;
}

std::string encode(const RunnerMessage &message)
{
    Encoder encoder;
    if (const auto *failure = std::get_if<FailureReport>(&message))
        encoder.number(failure_type)
            .number(static_cast<std::uint64_t>(failure->status))
            .text(std::string_view(failure->text).substr(0, text_limit));
    else if (const auto *notice = std::get_if<Notice>(&message))
        encoder.number(notice_type).text(std::string_view(notice->text).substr(0, text_limit));
    else if (const auto *preparing = std::get_if<Preparing>(&message))
        encoder.number(preparing_type).text(std::string_view(preparing->doing).substr(0, text_limit));
    else if (const auto *begun = std::get_if<SessionBegun>(&message))
        encoder.number(begun_type).text(begun->id);
    else if (const auto *ended = std::get_if<AgentEnded>(&message))
        encoder.number(ended_type).number(ended->by_signal ? 1 : 0).number(static_cast<std::uint64_t>(ended->value));
    else if (const auto *stopped = std::get_if<AgentStopped>(&message))
        encoder.number(stopped_type).number(static_cast<std::uint64_t>(stopped->number));
    else
        encoder.number(terminal_opened_type);
    return encoder.bytes();
}

RunnerMessage decode_runner_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    RunnerMessage message = TerminalOpened{};
    switch (decoder.number()) {
    case failure_type: {
        const std::uint64_t status = bounded(decoder, static_cast<std::uint64_t>(ExitStatus::configuration), "exit status");
        if (status < static_cast<std::uint64_t>(ExitStatus::usage)) throw ProtocolError("the runner reports a failure that is none");
        message = FailureReport{static_cast<ExitStatus>(status), decoder.text()};
        break;
    }
    case notice_type:
        message = Notice{decoder.text()};
        break;
    case preparing_type:
        message = Preparing{decoder.text()};
        break;
    case begun_type:
        message = SessionBegun{decoder.text()};
        break;
    case ended_type: {
        const bool by_signal = decoder.flag();
        message = AgentEnded{by_signal, static_cast<int>(bounded(decoder, 255, "exit status"))};
        break;
    }
    case terminal_opened_type:
        break;
    case stopped_type:
        message = AgentStopped{static_cast<int>(bounded(decoder, signal_limit, "signal"))};
        break;
    default:
        throw ProtocolError("the runner sent an unknown message");
    }
    decoder.end();
    return message;
}

bool asks_for_terminal(const AgentStopped &stopped) noexcept
{
    return stopped.number == SIGTTIN || stopped.number == SIGTTOU;
}

bool is_forwarded_signal(int number) noexcept
{
    switch (number) {
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGHUP:
    case SIGUSR2:
    case SIGTSTP:
        return true;
    case SIGUSR1: // it makes node open its debugger on loopback, where every local user can run code as the agent
        return !defence_is_on("no-debugger");
    default:
        return false;
    }
}

std::string encode(const WrapperMessage &message)
{
    Encoder encoder;
    if (const auto *signal = std::get_if<ForwardSignal>(&message))
        encoder.number(signal_type).number(static_cast<std::uint64_t>(signal->number)).number(signal->from_keyboard ? 1 : 0);
    else if (const auto *ready = std::get_if<TerminalReady>(&message))
        encoder.number(terminal_ready_type).number(ready->with_keyboard ? 1 : 0);
    else
        encoder.number(continue_type).number(std::get<ContinueAgent>(message).with_keyboard ? 1 : 0);
    return encoder.bytes();
}

WrapperMessage decode_wrapper_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    WrapperMessage message = TerminalReady{};
    switch (decoder.number()) {
    case signal_type: {
        const int number = static_cast<int>(bounded(decoder, signal_limit, "signal"));
        if (!is_forwarded_signal(number) && defence_is_on("forwarded-signals"))
            throw ProtocolError("this signal is not passed on to the agent");
        message = ForwardSignal{number, decoder.flag()};
        break;
    }
    case terminal_ready_type:
        message = TerminalReady{decoder.flag()};
        break;
    case continue_type:
        message = ContinueAgent{decoder.flag()};
        break;
    default:
        throw ProtocolError("only signals and terminal messages may follow a request");
    }
    decoder.end();
    return message;
}

const char *to_string(Program program) noexcept
{
    return program == Program::agent ? "agent" : program == Program::shell ? "shell" : "canary";
}

} // namespace pi_agent
