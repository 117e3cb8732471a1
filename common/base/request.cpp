// Encoding of the request and of the messages between wrapper and runner.
#include "common/base/request.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <climits>
#include <csignal>

namespace pi_agent {

namespace {

constexpr std::uint64_t request_type = 1;

// pi-contract: what describes the terminal, and nothing that could reach into the agent.
constexpr std::string_view presentation_names =
    "TERM COLORTERM COLORFGBG LANG TERM_PROGRAM TERM_PROGRAM_VERSION TERMINAL_EMULATOR KITTY_WINDOW_ID GHOSTTY_RESOURCES_DIR WEZTERM_PANE "
    "ITERM_SESSION_ID ALACRITTY_WINDOW_ID WT_SESSION TMUX STY ZELLIJ SSH_CONNECTION SSH_CLIENT SSH_TTY NO_COLOR FORCE_COLOR VISUAL EDITOR "
    "TZ";
// What names places, which the runner judges before any of it is passed on (runner/plan/host_view.hpp).
constexpr std::string_view place_names =
    "PATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH "
    "GIT_PREFIX";

constexpr std::size_t words_of(std::string_view words)
{
    return static_cast<std::size_t>(std::count(words.begin(), words.end(), ' ')) + 1;
}
// These, and some LC_.
constexpr std::size_t presentation_limit = words_of(presentation_names) + words_of(place_names) + words_of(toolchain_names) + 32;

constexpr std::size_t allowed_hosts_limit = 64;
constexpr std::size_t allowed_host_length = 300;  // a name has 253 bytes at most
constexpr std::size_t allowed_hosts_bytes = 8000; // in all: the record has one value for them, and cuts what is longer

void check_allowed_hosts(const std::vector<std::string> &hosts)
{
    std::size_t bytes = 0;
    for (const auto &host : hosts) {
        bytes += host.size() + 1;
        if (host.empty() || host.size() > allowed_host_length || host.find('\0') != std::string::npos)
            throw ProtocolError("the request names an impossible host");
    }
    if (bytes > allowed_hosts_bytes) throw ProtocolError("the request adds more hosts than are recorded; say fewer --pi-agent-allow");
}

constexpr std::size_t kept_out_limit = 64;
constexpr std::size_t kept_out_length = 64;

// A name is shown to people, and no value is ever sent.
void check_kept_out(const std::string &name)
{
    const bool plain =
        std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
    if (name.empty() || name.size() > kept_out_length || !plain) throw ProtocolError("the request names a variable with an invalid name");
}

void check_argument(const std::string &argument)
{
    if (argument.find('\0') != std::string::npos && defence_is_on("nul-arguments")) throw ProtocolError("an argument contains a NUL byte");
}

void check_presentation(const std::string &assignment)
{
    const std::size_t equals = assignment.find('=');
    const bool known = equals != std::string::npos && is_passed_variable(std::string_view(assignment).substr(0, equals));
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

bool is_passed_variable(std::string_view name) noexcept
{
    return is_presentation_variable(name) || has_word(place_names, name) || has_word(toolchain_names, name);
}

std::vector<int> descriptors_of(const Request &request, FdRef cwd, const std::array<int, 3> &stdio)
{
    std::vector<int> descriptors = {cwd.get()};
    for (std::size_t index = 0; index < 3; ++index)
        if (!request.on_terminal[index]) descriptors.push_back(stdio[index]);
    return descriptors;
}

void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline)
{
    send_record(channel, encode_request(request), descriptors_of(request, cwd, stdio), deadline);
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
    encoder.number(request_type).texts(request.arguments).texts(request.presentation).number(request.umask).number(request.open_files);
    const WindowSize &window = request.window;
    encode(encoder, request.on_terminal).number(window.rows).number(window.columns).number(window.x_pixels).number(window.y_pixels);
    encoder.number(static_cast<std::uint64_t>(request.program))
        .text(request.tmpdir)
        .number(request.debug ? 1 : 0)
        .number(request.sessions ? 1 : 0)
        .number(static_cast<std::uint64_t>(request.narrowing.network))
        .number(request.narrowing.read_only ? 1 : 0)
        .number(request.narrowing.project_only ? 1 : 0)
        .texts(request.allow)
        .texts(request.kept_out);
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
    request.open_files = decoder.number();
    for (bool &on_terminal : request.on_terminal)
        on_terminal = bounded(decoder, 1, "terminal flag") == 1;
    for (std::uint16_t *field : {&request.window.rows, &request.window.columns, &request.window.x_pixels, &request.window.y_pixels})
        *field = static_cast<std::uint16_t>(bounded(decoder, 0xffff, "window size"));
    request.program = static_cast<Program>(bounded(decoder, static_cast<std::uint64_t>(Program::canary), "program"));
    request.tmpdir = decoder.text();
    request.debug = bounded(decoder, 1, "debug flag") == 1;
    request.sessions = bounded(decoder, 1, "sessions flag") == 1;
    request.narrowing.network =
        static_cast<LeftNetwork>(bounded(decoder, static_cast<std::uint64_t>(LeftNetwork::none), "choice of a network"));
    request.narrowing.read_only = bounded(decoder, 1, "read-only flag") == 1;
    request.narrowing.project_only = bounded(decoder, 1, "scope flag") == 1;
    request.allow = decoder.texts(allowed_hosts_limit);
    request.kept_out = decoder.texts(kept_out_limit);
    decoder.end();
    if (request.tmpdir.size() >= PATH_MAX || request.tmpdir.find('\0') != std::string::npos)
        throw ProtocolError("the request carries an impossible path");
    std::for_each(request.arguments.begin(), request.arguments.end(), check_argument);
    std::for_each(request.presentation.begin(), request.presentation.end(), check_presentation);
    check_allowed_hosts(request.allow);
    std::for_each(request.kept_out.begin(), request.kept_out.end(), check_kept_out);
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

RunnerMessage decode_runner_message(std::string_view bytes)
{
    return decode_one_of<RunnerMessage>(bytes, "the runner sent an unknown message");
}

bool asks_for_terminal(const AgentStopped &stopped) noexcept
{
    return stopped.number == SIGTTIN || stopped.number == SIGTTOU;
}

bool asks_for_end(int signal) noexcept
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
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

WrapperMessage decode_wrapper_message(std::string_view bytes)
{
    auto message = decode_one_of<WrapperMessage>(bytes, "only signals and terminal messages may follow a request");
    const auto *signal = std::get_if<ForwardSignal>(&message);
    if (signal != nullptr && !is_forwarded_signal(signal->number) && defence_is_on("forwarded-signals"))
        throw ProtocolError("this signal is not passed on to the agent");
    return message;
}

const char *to_string(Program program) noexcept
{
    return program == Program::agent ? "agent" : program == Program::shell ? "shell" : "canary";
}

} // namespace pi_agent
