// The wrapper's request to the runner, and their messages afterwards. The runner treats every byte as hostile.
#pragma once

#include "common/base/channel.hpp"

#include <array>

namespace pi_agent {

// The environment variables that describe the user's terminal and language.
bool is_presentation_variable(std::string_view name) noexcept;
// Where toolchains are, for programs that look there and not along PATH: they name places, which the runner judges
// (runner/plan/host_view.hpp).
inline constexpr std::string_view toolchain_names =
    "ANDROID_HOME ANDROID_SDK_ROOT CONDA_PREFIX DOTNET_ROOT GOROOT JAVA_HOME LMOD_DIR LMOD_PKG MODULESHOME VIRTUAL_ENV";
// The same, of several places with colons between them, as compiler modules set them (module(1)).
inline constexpr std::string_view place_list_names =
    "C_INCLUDE_PATH CMAKE_PREFIX_PATH CPATH CPLUS_INCLUDE_PATH LD_LIBRARY_PATH LIBRARY_PATH MODULEPATH PERL5LIB PKG_CONFIG_PATH";
// By which the user's own agent finds its directories. Their names are passed on, where a session has others.
inline constexpr std::string_view agent_directory_names = "PI_CODING_AGENT_DIR PI_CODING_AGENT_SESSION_DIR";

// These, and those that name places which may also exist inside (PATH, GIT_DIR, …). No other variable leaves the user's shell.
bool is_passed_variable(std::string_view name) noexcept;

// A terminal's size: character cells, and pixels if the terminal reports them (ioctl_tty(2), TIOCGWINSZ).
struct WindowSize {
    std::uint16_t rows = 0;
    std::uint16_t columns = 0;
    std::uint16_t x_pixels = 0;
    std::uint16_t y_pixels = 0;
};

// Which of the standard descriptors are the user's terminal: they stay with the wrapper, and the agent gets a pty instead.
using OnTerminal = std::array<bool, 3>;
inline bool has_any(const OnTerminal &on_terminal) noexcept
{
    return on_terminal[0] || on_terminal[1] || on_terminal[2];
}
inline bool has_all(const OnTerminal &on_terminal) noexcept
{
    return on_terminal[0] && on_terminal[1] && on_terminal[2];
}

// What starts in the sandbox: the policy's agent, a shell for people who want to see what the agent sees, or the canary, which tries what
// the sandbox must refuse.
enum class Program { agent, shell, canary };
const char *to_string(Program program) noexcept;

// What a start gives up of what the policy allows it: no value here asks for more than another.
enum class LeftNetwork { all, loopback, none };
struct Narrowing {
    LeftNetwork network = LeftNetwork::all;
    bool read_only = false;    // change nothing in the project
    bool project_only = false; // see the repository alone, as by projects.scope
};

struct Request {
    std::vector<std::string> arguments;    // of the program, without argv[0]; no NUL bytes
    std::vector<std::string> presentation; // NAME=VALUE, of the caller's shell: is_passed_variable
    unsigned umask = 077;                  // of the caller: new files in the project get the modes that the caller's own would
    OnTerminal on_terminal{};
    WindowSize window; // of that terminal
    Program program = Program::agent;
    std::string tmpdir;              // what --pi-agent-tmpdir names, as written; empty: a temporary directory of the session's own
    bool debug = false;              // print what the session gets
    bool sessions = false;           // copy the sessions that the caller's own agent had in this directory
    std::uint64_t open_files = 1024; // the caller's soft limit (getrlimit(2)); the hard one is the session's
    Narrowing narrowing = {};
    std::vector<std::string> allow = {};    // what --pi-agent-allow names: hosts that the policy lets its user add
    std::vector<std::uint64_t> ports = {};  // of the session's network that its user's own programs reach (--pi-agent-port)
    std::vector<std::string> kept_out = {}; // names of the caller's variables with a provider's key, which stay in their shell
    static constexpr std::uint64_t type = 1;
    static void fields(auto &archive, auto &self);
};

// A request with its descriptors: all owned, close-on-exec, nothing known about them yet.
struct ReceivedRequest {
    Request request;
    UniqueFd cwd;
    std::array<UniqueFd, 3> stdio; // empty if it is on the terminal
    UniqueFd connections;          // if it names ports: over it come their connections (runner/inside/agent_process.cpp)
};

// The descriptors of a request: cwd (O_PATH), the standard descriptors that are not on the terminal, and the channel of its ports.
std::vector<int> descriptors_of(const Request &request, FdRef cwd, const std::array<int, 3> &stdio, FdRef connections = FdRef(-1));
// Sends `request` with its descriptors; all are borrowed.
void send_request(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio, Deadline deadline,
                  FdRef connections = FdRef(-1));

// A request's own bytes. decode_request throws ProtocolError for anything that encode_request does not make.
std::string encode_request(const Request &request);
Request decode_request(std::string_view bytes);

// Throws ProtocolError for anything that is not exactly one well-formed request with its descriptors.
ReceivedRequest receive_request(FdRef channel, Deadline deadline);

constexpr std::size_t ports_limit = 16; // of one session

// Runner to wrapper.
constexpr std::size_t message_text_limit = 16UL * 1024;
constexpr int signal_limit = 64;
constexpr const char *impossible_signal = "a message carries an impossible signal";
constexpr const char *impossible_status = "a message carries an impossible exit status";

struct FailureReport {
    ExitStatus status = ExitStatus::internal;
    std::string text;
    FailureKind kind = FailureKind::other;
    static constexpr std::uint64_t type = 2;
    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.status, ExitStatus::configuration, impossible_status);
        archive.require([&] { return self.status >= ExitStatus::usage; }, "the runner reports a failure with an exit status below 64");
        archive.cut(self.text, message_text_limit);
        archive.bounded(self.kind, last_failure_kind, "the runner reports a failure of no known kind");
    }
};
struct Notice { // a line that `pi` prints beside the agent's output; root sends it by Entered::tell (runner/root/launch/phases.hpp)
    std::string text;
    static constexpr std::uint64_t type = 3;
    static void fields(auto &archive, auto &self) { archive.cut(self.text, message_text_limit); }
};
struct Preparing { // what the start does or waits for from now on; the next message of any kind replaces it
    std::string doing;
    bool takes_long = true; // a terminal shows it at once; otherwise it is told once it takes long
    static constexpr std::uint64_t type = 10;
    static void fields(auto &archive, auto &self)
    {
        archive.cut(self.doing, message_text_limit);
        archive(self.takes_long);
    }
};
struct SessionBegun { // the agent is about to run
    std::string id;
    static constexpr std::uint64_t type = 11;
    static void fields(auto &archive, auto &self) { archive(self.id); }
};
struct TerminalOpened { // carries one descriptor, the master of the session's pty
    static constexpr std::uint64_t type = 6;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};
// Until ContinueAgent. TTIN and TTOU say that it asked for the terminal: to read a key, or to change settings.
struct AgentStopped {
    int number; // the signal
    static constexpr std::uint64_t type = 7;
    static void fields(auto &archive, auto &self) { archive.bounded(self.number, signal_limit, impossible_signal); }
};
[[nodiscard]] bool asks_for_terminal(const AgentStopped &stopped) noexcept;
struct AgentEnded {
    bool by_signal; // value is then the signal's number, otherwise the exit status
    int value;
    static constexpr std::uint64_t type = 4;
    static void fields(auto &archive, auto &self)
    {
        archive(self.by_signal);
        archive.bounded(self.value, 255, impossible_status);
    }
};
// The agent has got a signal that asks for its end (asks_for_end), and may do with it what it likes. From pi-agent-exec to the runner as
// well. Without this answer, or the session's end, the signal has reached nobody.
struct SignalHeard {
    static constexpr std::uint64_t type = 12;
    static void fields(auto & /*archive*/, auto & /*self*/) {}
};
using RunnerMessage = std::variant<FailureReport, Notice, Preparing, SessionBegun, TerminalOpened, AgentStopped, SignalHeard, AgentEnded>;
constexpr std::size_t small_message_limit = 64; // bytes of any message that the wrapper sends after its request
RunnerMessage decode_runner_message(std::string_view bytes);

// Wrapper to runner, and runner to pi-agent-exec.
struct ForwardSignal {
    int number = 0;             // is_forwarded_signal
    bool from_keyboard = false; // for the whole job, as from the kernel, not for one process
    static constexpr std::uint64_t type = 5;
    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.number, signal_limit, impossible_signal);
        archive(self.from_keyboard);
    }
};
// The wrapper has set up the pty: the agent may start, with the keyboard or, in the background, without it.
struct TerminalReady {
    bool with_keyboard = false;
    static constexpr std::uint64_t type = 8;
    static void fields(auto &archive, auto &self) { archive(self.with_keyboard); }
};
struct ContinueAgent {
    bool with_keyboard = false;
    static constexpr std::uint64_t type = 9;
    static void fields(auto &archive, auto &self) { archive(self.with_keyboard); }
};
using WrapperMessage = std::variant<ForwardSignal, TerminalReady, ContinueAgent>;
WrapperMessage decode_wrapper_message(std::string_view bytes); // throws ProtocolError for a signal that is never forwarded
bool is_forwarded_signal(int number) noexcept;
// By one of these, somebody has had enough of what is waited for.
bool asks_for_end(int signal) noexcept;

} // namespace pi_agent
