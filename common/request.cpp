// Encoding of the request and of the messages between wrapper and runner.
#include "common/request.hpp"
#include "common/defence.hpp"

#include <algorithm>
#include <csignal>

namespace pi_agent {

namespace {

constexpr std::uint64_t request_type = 1;
constexpr std::uint64_t failure_type = 2;
constexpr std::uint64_t notice_type = 3;
constexpr std::uint64_t ended_type = 4;
constexpr std::uint64_t signal_type = 5;

constexpr std::size_t argument_count_limit = 65'536;
constexpr std::size_t text_limit = 16 * 1024; // of a message for the user

// pi-contract: what describes the terminal, and nothing that could reach into the agent.
constexpr std::array presentation_names = {
    std::string_view("TERM"),
    std::string_view("COLORTERM"),
    std::string_view("COLORFGBG"),
    std::string_view("LANG"),
    std::string_view("TERM_PROGRAM"),
    std::string_view("TERM_PROGRAM_VERSION"),
    std::string_view("TERMINAL_EMULATOR"),
    std::string_view("KITTY_WINDOW_ID"),
    std::string_view("GHOSTTY_RESOURCES_DIR"),
    std::string_view("WEZTERM_PANE"),
    std::string_view("ITERM_SESSION_ID"),
    std::string_view("ALACRITTY_WINDOW_ID"),
    std::string_view("WT_SESSION"),
    std::string_view("TMUX"),
    std::string_view("STY"),
    std::string_view("ZELLIJ"),
    std::string_view("SSH_CONNECTION"),
    std::string_view("SSH_CLIENT"),
    std::string_view("SSH_TTY"),
    std::string_view("NO_COLOR"),
    std::string_view("FORCE_COLOR"),
    std::string_view("VISUAL"),
    std::string_view("EDITOR"),
    std::string_view("TZ"),
};

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

} // namespace

bool is_presentation_variable(std::string_view name) noexcept
{
    if (name.substr(0, 3) == "LC_")
        return name.size() > 3 && std::all_of(name.begin() + 3, name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    return std::find(presentation_names.begin(), presentation_names.end(), name) != presentation_names.end();
}

void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline)
{
    send_record(channel, encode_request(request), {cwd.get(), stdio[0], stdio[1], stdio[2]}, deadline);
}

std::string encode_request(const Request &request)
{
    return Encoder().number(request_type).texts(request.arguments).texts(request.presentation).number(request.umask).bytes();
}

Request decode_request(std::string_view bytes)
{
    Decoder decoder(bytes);
    if (decoder.number() != request_type) throw ProtocolError("the first message is not a request");
    Request request;
    request.arguments = decoder.texts(argument_count_limit);
    request.presentation = decoder.texts(presentation_names.size() + 32);
    const std::uint64_t mask = decoder.number();
    decoder.end();
    if (mask > 0777) throw ProtocolError("the request carries an impossible umask");
    request.umask = static_cast<unsigned>(mask);
    std::for_each(request.arguments.begin(), request.arguments.end(), check_argument);
    std::for_each(request.presentation.begin(), request.presentation.end(), check_presentation);
    return request;
}

ReceivedRequest receive_request(FdRef channel, Deadline deadline)
{
    std::optional<Packet> record = receive_record(channel, deadline);
    if (!record) throw ProtocolError("the connection was closed before a request came");
    if (record->fds.size() != 4 && defence_is_on("descriptor-count"))
        throw ProtocolError("a request carries exactly four descriptors, this one has " + std::to_string(record->fds.size()));
    ReceivedRequest received;
    received.request = decode_request(record->bytes);
    received.cwd = std::move(record->fds[0]);
    for (std::size_t index = 0; index < 3; ++index)
        received.stdio[index] = std::move(record->fds[index + 1]);
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
    else if (const auto *ended = std::get_if<AgentEnded>(&message))
        encoder.number(ended_type).number(ended->by_signal ? 1 : 0).number(static_cast<std::uint64_t>(ended->value));
    return encoder.bytes();
}

RunnerMessage decode_runner_message(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::uint64_t type = decoder.number();
    if (type == failure_type) {
        const std::uint64_t status = decoder.number();
        FailureReport failure{static_cast<ExitStatus>(status), decoder.text()};
        decoder.end();
        return failure;
    }
    if (type == notice_type) {
        Notice notice{decoder.text()};
        decoder.end();
        return notice;
    }
    if (type != ended_type) throw ProtocolError("the runner sent an unknown message");
    const bool by_signal = decoder.number() == 1;
    const std::uint64_t value = decoder.number();
    decoder.end();
    if (value > 255) throw ProtocolError("the runner sent an impossible exit status");
    return AgentEnded{by_signal, static_cast<int>(value)};
}

bool is_forwarded_signal(int number) noexcept
{
    switch (number) {
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGHUP:
    case SIGUSR2:
        return true;
    case SIGUSR1: // it makes node open its debugger on loopback, where every local user can run code as the agent
        return !defence_is_on("no-debugger");
    default:
        return false;
    }
}

std::string encode_signal(int number)
{
    return Encoder().number(signal_type).number(static_cast<std::uint64_t>(number)).bytes();
}

int decode_signal(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::uint64_t type = decoder.number();
    const std::uint64_t number = decoder.number();
    decoder.end();
    if (type != signal_type || number > 64 || !is_forwarded_signal(static_cast<int>(number)))
        throw ProtocolError("only a signal for the agent may follow a request");
    return static_cast<int>(number);
}

} // namespace pi_agent
