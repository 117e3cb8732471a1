// Encoding of the request and of the messages between wrapper and runner.
#include "common/base/request.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <climits>
#include <csignal>

namespace pi_agent {

namespace {

// pi-contract: what describes the terminal, and nothing that could reach into the agent.
constexpr std::string_view presentation_names =
    "TERM COLORTERM COLORFGBG LANG TERM_PROGRAM TERM_PROGRAM_VERSION TERMINAL_EMULATOR KITTY_WINDOW_ID GHOSTTY_RESOURCES_DIR WEZTERM_PANE "
    "ITERM_SESSION_ID ALACRITTY_WINDOW_ID WT_SESSION ZELLIJ SSH_CONNECTION SSH_CLIENT SSH_TTY NO_COLOR FORCE_COLOR VISUAL EDITOR "
    "TZ PI_CLIPBOARD_OSC52 PI_PROGRAM_STATUS";
// What names places, which the runner judges before any of it is passed on (runner/plan/host_view.hpp).
constexpr std::string_view place_names =
    "PATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH "
    "GIT_PREFIX TERMINFO";

constexpr std::size_t words_of(std::string_view words)
{
    return static_cast<std::size_t>(std::count(words.begin(), words.end(), ' ')) + 1;
}
// These, and some LC_.
constexpr std::size_t presentation_limit =
    words_of(presentation_names) + words_of(place_names) + words_of(toolchain_names) + words_of(place_list_names) + 32;

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

void check_presentation(const std::string &assignment)
{
    const std::size_t equals = assignment.find('=');
    const bool known = equals != std::string::npos && is_passed_variable(std::string_view(assignment).substr(0, equals));
    if (!known && defence_is_on("presentation-names"))
        throw ProtocolError("the request carries an environment variable that is never passed on");
    if (assignment.find('\0') != std::string::npos) throw ProtocolError("an environment value contains a NUL byte");
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
    return is_presentation_variable(name) || has_word(place_names, name) || has_word(toolchain_names, name) ||
           has_word(place_list_names, name);
}

std::vector<int> descriptors_of(const Request &request, FdRef cwd, const std::array<int, 3> &stdio, FdRef connections)
{
    std::vector<int> descriptors = {cwd.get()};
    for (std::size_t index = 0; index < 3; ++index)
        if (!request.on_terminal[index]) descriptors.push_back(stdio[index]);
    if (!request.ports.empty()) descriptors.push_back(connections.get());
    return descriptors;
}

void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline, FdRef connections)
{
    send_record(channel, encode_request(request), descriptors_of(request, cwd, stdio, connections), deadline);
}

void Request::fields(auto &archive, auto &self)
{
    archive(self.arguments);
    archive.bounded(self.presentation, presentation_limit);
    archive.bounded(self.umask, 0777U, "a message carries an impossible umask");
    archive(self.open_files);
    for (auto &one : self.on_terminal)
        archive.bounded(one, true, "a message carries an impossible terminal flag");
    for (auto *field : {&self.window.rows, &self.window.columns, &self.window.x_pixels, &self.window.y_pixels})
        archive.bounded(*field, 0xffff, "a message carries an impossible window size");
    archive.bounded(self.program, Program::canary, "a message carries an impossible program");
    archive(self.tmpdir);
    archive.bounded(self.debug, true, "a message carries an impossible debug flag");
    archive.bounded(self.sessions, true, "a message carries an impossible sessions flag");
    archive.bounded(self.narrowing.network, LeftNetwork::none, "a message carries an impossible choice of a network");
    archive.bounded(self.narrowing.read_only, true, "a message carries an impossible read-only flag");
    archive.bounded(self.narrowing.project_only, true, "a message carries an impossible scope flag");
    archive.bounded(self.allow, allowed_hosts_limit);
    archive.bounded(self.kept_out, kept_out_limit);
    archive.bounded(self.ports, ports_limit, "a message names too many ports");
    archive.require(
        [&] {
            return std::all_of(self.ports.begin(), self.ports.end(), [](std::uint64_t port) { return port > 0 && port <= UINT16_MAX; });
        },
        "a message names an impossible port");
}

std::string encode_request(const Request &request)
{
    return encode(request);
}

Request decode_request(std::string_view bytes)
{
    Decoder decoder(bytes);
    if (decoder.number() != Request::type) throw ProtocolError("the first message is not a request");
    Request request;
    decoder(request);
    decoder.end();
    if (request.tmpdir.size() >= PATH_MAX || request.tmpdir.find('\0') != std::string::npos)
        throw ProtocolError("the request carries an impossible path");
    for (const auto &argument : request.arguments)
        if (argument.find('\0') != std::string::npos && defence_is_on("nul-arguments"))
            throw ProtocolError("an argument contains a NUL byte");
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
    const auto expected = static_cast<std::size_t>(1 + std::count(on_terminal.begin(), on_terminal.end(), false)) +
                          (received.request.ports.empty() ? 0U : 1U);
    if (record->fds.size() != expected && defence_is_on("descriptor-count"))
        throw ProtocolError("this request carries exactly " + std::to_string(expected) + " descriptors, this one has " +
                            std::to_string(record->fds.size()));
    auto next = record->fds.begin();
    const auto take = [&] { return next == record->fds.end() ? UniqueFd() : std::move(*next++); };
    received.cwd = take();
    for (std::size_t index = 0; index < 3; ++index)
        if (!on_terminal[index]) received.stdio[index] = take();
    if (!received.request.ports.empty()) received.connections = take();
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
    constexpr std::array always = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR2, SIGTSTP};
    // SIGUSR1 makes node open its debugger on loopback, where every local user can run code as the agent.
    return std::find(always.begin(), always.end(), number) != always.end() || (number == SIGUSR1 && !defence_is_on("no-debugger"));
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
