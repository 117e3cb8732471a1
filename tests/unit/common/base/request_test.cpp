// The request and the messages between wrapper and runner, as a hostile peer would send them: common/base/request.hpp
#include "common/base/request.hpp"

#include "support/descriptors.hpp"
#include "support/failure.hpp"

#include <csignal>
#include <limits>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace request_test {

namespace {

constexpr std::uint64_t request_type = 1;

Deadline soon()
{
    return in_seconds(10);
}

Encoder beginning(const std::vector<std::string> &arguments, const std::vector<std::string> &presentation, std::uint64_t umask)
{
    Encoder encoder;
    encoder.number(request_type).texts(arguments).texts(presentation).number(umask).number(1024);
    return encoder;
}

// With nothing on a terminal.
std::string request_bytes(const std::vector<std::string> &arguments, const std::vector<std::string> &presentation, std::uint64_t umask)
{
    Encoder encoder = beginning(arguments, presentation, umask);
    for (int field = 0; field < 8; ++field)
        encoder.number(0);
    return encoder.text("").number(0).number(0).number(0).number(0).number(0).texts({}).texts({}).number(0).bytes();
}

// Which descriptors are on the terminal, and its size, as they are sent; then the agent as the program, no directory of the user's, no
// debugging.
std::string terminal_bytes(const std::vector<std::uint64_t> &fields)
{
    Encoder encoder = beginning({}, {}, 0);
    for (const std::uint64_t field : fields)
        encoder.number(field);
    return encoder.number(0).text("").number(0).number(0).number(0).number(0).number(0).texts({}).texts({}).number(0).bytes();
}

// With a temporary directory of the user's.
std::string tmpdir_bytes(const std::string &tmpdir, std::uint64_t debug, std::uint64_t sessions = 0)
{
    Encoder encoder = beginning({}, {}, 0);
    for (int field = 0; field < 8; ++field)
        encoder.number(0);
    return encoder.text(tmpdir).number(debug).number(sessions).number(0).number(0).number(0).texts({}).texts({}).number(0).bytes();
}

// With names of variables that stayed in the shell.
std::string kept_out_bytes(const std::vector<std::string> &names)
{
    Encoder encoder = beginning({}, {}, 0);
    for (int field = 0; field < 8; ++field)
        encoder.number(0);
    return encoder.text("").number(0).number(0).number(0).number(0).number(0).texts({}).texts(names).number(0).bytes();
}

std::string allow_bytes(const std::vector<std::string> &hosts)
{
    Encoder encoder = beginning({}, {}, 0);
    for (int field = 0; field < 8; ++field)
        encoder.number(0);
    return encoder.text("").number(0).number(0).number(0).number(0).number(0).texts(hosts).texts({}).number(0).bytes();
}

std::string port_bytes(const std::vector<std::uint64_t> &ports)
{
    Encoder encoder = beginning({}, {}, 0);
    for (int field = 0; field < 8; ++field)
        encoder.number(0);
    encoder.text("").number(0).number(0).number(0).number(0).number(0).texts({}).texts({}).number(ports.size());
    for (const std::uint64_t port : ports)
        encoder.number(port);
    return encoder.bytes();
}

// What receive_request says of a record with these bytes and that many descriptors.
Caught refusal_of(const std::string &bytes, std::size_t descriptors = 4)
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const auto before = count_open_descriptors();
    std::thread sending([&, channel = FdRef(left)] { send_record(channel, bytes, std::vector<int>(descriptors, null.get()), soon()); });
    const FdRef receiver = right;
    const Caught caught = failure_of([&] { return receive_request(receiver, soon()); });
    sending.join();
    CHECK(count_open_descriptors() == before);
    return caught;
}

} // namespace

TEST_CASE("only variables that describe terminal and language are presentation")
{
    for (const std::string name :
         {"TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "NO_COLOR", "EDITOR", "SSH_TTY", "ZELLIJ"})
        CHECK_MESSAGE(is_presentation_variable(name), name);
    for (const std::string name : {"",
                                   "PATH",
                                   "HOME",
                                   "USER",
                                   "SHELL",
                                   "LD_PRELOAD",
                                   "LD_LIBRARY_PATH",
                                   "NODE_OPTIONS",
                                   "PERL5OPT",
                                   "BASH_ENV",
                                   "ENV",
                                   "PYTHONSTARTUP",
                                   "LC_",
                                   "LC_all",
                                   "LC_A1",
                                   "LC_ALL=x",
                                   "lc_all",
                                   "term",
                                   "TERM ",
                                   " TERM",
                                   "TERMX",
                                   "TER",
                                   "LC",
                                   "LANGUAGE",
                                   "LOCPATH",
                                   "NLSPATH",
                                   "GCONV_PATH",
                                   "SUDO_UID",
                                   "SUDO_USER",
                                   "TERMINFO",
                                   "IFS",
                                   "PS4",
                                   "GIT_DIR",
                                   "GIT_SSH_COMMAND",
                                   "http_proxy",
                                   "PI_AGENT_X",
                                   "LC_A\nPATH",
                                   "GIT_PAGER",
                                   "PAGER",
                                   "DISPLAY",
                                   "SSH_AUTH_SOCK"}) {
        CHECK_FALSE_MESSAGE(is_presentation_variable(name), name);
    }
    for (const std::string name : {"PATH", "GIT_DIR", "GIT_INDEX_FILE", "TERM", "TERMINFO", "LC_ALL", "LD_LIBRARY_PATH"})
        CHECK_MESSAGE(is_passed_variable(name), name);
    for (const std::string name : {"GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_CONFIG_COUNT", "MANPATH", "LD_PRELOAD", "LD_AUDIT", "TMUX",
                                   "STY", "TERMINFO_DIRS", "PATH ", "GIT_"})
        CHECK_FALSE_MESSAGE(is_passed_variable(name), name);
    CHECK_FALSE(is_presentation_variable(std::string_view("TERM\0", 5)));
    CHECK_FALSE(is_presentation_variable(std::string_view("LC_A\0", 5)));
}

TEST_CASE("a request arrives as it was sent, each descriptor in its place")
{
    auto [left, right] = make_channel();
    const auto directory = open_path("/usr", O_PATH | O_DIRECTORY);
    const auto null = open_path("/dev/null");
    const auto zero = open_path("/dev/zero");
    const auto file = open_path("/etc/passwd");
    const Request request{{"-p", "", "caf\xe9 \n \x1b[31m $HOME %n", std::string(200'000, 'x')},
                          {"TERM=xterm", "LC_ALL=", "TZ=a=b"},
                          027,
                          {},
                          {},
                          Program::agent,
                          "tmp dir/\xe9",
                          true,
                          true,
                          4000,
                          {LeftNetwork::loopback, true, true},
                          {"github.com:22", "*.debian.org:80"},
                          {1, 65535}};
    const auto connections = open_path("/etc/group");
    std::thread sending([&, channel = FdRef(left)] {
        send_request(channel, request, directory, {null.get(), zero.get(), file.get()}, soon(), connections);
    });
    const ReceivedRequest received = receive_request(right, soon());
    sending.join();
    CHECK((received.request.arguments == request.arguments));
    CHECK(received.request.presentation == request.presentation);
    CHECK(received.request.umask == 027);
    CHECK(received.request.open_files == 4000);
    CHECK(received.request.tmpdir == request.tmpdir);
    CHECK(received.request.debug);
    CHECK(received.request.sessions);
    CHECK(received.request.narrowing.network == LeftNetwork::loopback);
    CHECK(received.request.narrowing.read_only);
    CHECK(received.request.narrowing.project_only);
    CHECK(received.request.allow == request.allow);
    CHECK(received.request.ports == request.ports);
    CHECK(inode_of(received.connections) == inode_of(connections));
    CHECK(inode_of(received.cwd) == inode_of(directory));
    CHECK(inode_of(received.stdio[0]) == inode_of(null));
    CHECK(inode_of(received.stdio[1]) == inode_of(zero));
    CHECK(inode_of(received.stdio[2]) == inode_of(file));
}

TEST_CASE("what is on the terminal stays with the wrapper, and the rest arrives in its place")
{
    const auto directory = open_path("/usr", O_PATH | O_DIRECTORY);
    const auto null = open_path("/dev/null");
    const auto zero = open_path("/dev/zero");
    const auto file = open_path("/etc/passwd");
    const std::array<int, 3> stdio = {null.get(), zero.get(), file.get()};
    for (unsigned bits = 0; bits < 8; ++bits) {
        CAPTURE(bits);
        Request request{{"-p"},
                        {},
                        0,
                        {(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0},
                        {40, 120, 0xffff, 1},
                        bits % 3 == 0 ? Program::agent : Program::shell,
                        "",
                        false};
        auto [left, right] = make_channel();
        send_request(left, request, directory, stdio, soon());
        const ReceivedRequest received = receive_request(right, soon());
        CHECK(received.request.on_terminal == request.on_terminal);
        CHECK(received.request.program == request.program);
        CHECK(received.request.window.rows == 40);
        CHECK(received.request.window.columns == 120);
        CHECK(received.request.window.x_pixels == 0xffff);
        CHECK(received.request.window.y_pixels == 1);
        CHECK(inode_of(received.cwd) == inode_of(directory));
        for (std::size_t index = 0; index < 3; ++index) {
            CHECK(received.stdio[index].is_open() == !request.on_terminal[index]);
            if (received.stdio[index]) CHECK(inode_of(received.stdio[index]) == inode_of(FdRef(stdio[index])));
        }
    }
}

TEST_CASE("a request without arguments and with either border of the umask is a request")
{
    CHECK(refusal_of(request_bytes({}, {}, 0)).status == 0);
    CHECK(refusal_of(request_bytes({}, {}, 0777)).status == 0);
}

TEST_CASE("a request that names ports comes with their channel, and names ports alone")
{
    CHECK(refusal_of(port_bytes({1, 65535}), 5).status == 0);
    CHECK(has(refusal_of(port_bytes({3000}), 4).text, "exactly 5 descriptors"));
    CHECK(has(refusal_of(port_bytes({}), 5).text, "exactly 4 descriptors"));
    for (const std::uint64_t port : {std::uint64_t{0}, std::uint64_t{65536}, std::uint64_t{65536 + 3000}, ~std::uint64_t{0}})
        CHECK(has(refusal_of(port_bytes({port}), 5).text, "impossible port"));
    CHECK(has(refusal_of(port_bytes(std::vector<std::uint64_t>(17, 3000)), 5).text, "too many ports"));
}

TEST_CASE("as many arguments as a kernel gives a program are a request")
{
    CHECK(refusal_of(request_bytes(std::vector<std::string>(200'000, "12345"), {}, 0)).status == 0);
}

TEST_CASE("what is not exactly one request is refused, and its descriptors are closed")
{
    struct Row {
        std::string what;
        std::string bytes;
        std::string refusal;
    };
    const std::string good = request_bytes({"-p"}, {"TERM=x"}, 022);
    const std::vector<Row> rows = {
        {"nothing", "", "ends too early"},
        {"another type", Encoder().number(2).texts({}).texts({}).number(0).bytes(), "not a request"},
        {"without a word on terminals", beginning({}, {}, 0).bytes(), "ends too early"},
        {"a terminal that is more than yes", terminal_bytes({0, 0, 2, 0, 0, 0, 0}), "impossible terminal flag"},
        {"a program that is none of the three",
         beginning({}, {}, 0).number(0).number(0).number(0).number(0).number(0).number(0).number(0).number(3).bytes(),
         "impossible program"},
        {"a window that is too high", terminal_bytes({0, 0, 0, 0x10000, 0, 0, 0}), "impossible window size"},
        {"a window of too many pixels", terminal_bytes({0, 0, 0, 0, 0, 0, std::numeric_limits<std::uint64_t>::max()}),
         "impossible window size"},
        {"a temporary directory with NUL", tmpdir_bytes(std::string("a\0b", 3), 0), "impossible path"},
        {"a temporary directory that is too long", tmpdir_bytes(std::string(4096, 'x'), 0), "impossible path"},
        {"debugging that is more than yes", tmpdir_bytes("", 2), "impossible debug flag"},
        {"sessions that are more than yes", tmpdir_bytes("", 0, 2), "impossible sessions flag"},
        {"a kept variable with a value", kept_out_bytes({"OPENAI_API_KEY=k"}), "names a variable with an invalid name"},
        {"a kept variable that could be taken for something else", kept_out_bytes({"A_KEY\n"}), "names a variable with an invalid name"},
        {"a kept variable without a name", kept_out_bytes({""}), "names a variable with an invalid name"},
        {"a kept variable that is too long", kept_out_bytes({std::string(65, 'K')}), "names a variable with an invalid name"},
        {"too many kept variables", kept_out_bytes(std::vector<std::string>(65, "A_KEY")), "more entries than it holds"},
        {"a host without a name", allow_bytes({""}), "an impossible host"},
        {"a host with NUL", allow_bytes({std::string("a\0b", 3)}), "an impossible host"},
        {"a host that is too long", allow_bytes({std::string(301, 'a')}), "an impossible host"},
        {"more hosts than the record has room for", allow_bytes(std::vector<std::string>(40, std::string(200, 'a'))), "than are recorded"},
        {"too many hosts", allow_bytes(std::vector<std::string>(65, "a.example")), "more entries than it holds"},
        {"cut", good.substr(0, good.size() - 1), "ends too early"},
        {"longer", good + "x", "longer than its fields"},
        {"NUL in an argument", request_bytes({std::string("a\0b", 3)}, {}, 0), "an argument contains a NUL byte"},
        {"NUL in a value", request_bytes({}, {std::string("TERM=a\0b", 8)}, 0), "an environment value contains a NUL byte"},
        {"NUL in a name", request_bytes({}, {std::string("TE\0RM=a", 7)}, 0), "never passed on"},
        {"a variable of the loader", request_bytes({}, {"LD_PRELOAD=/tmp/x.so"}, 0), "never passed on"},
        {"one among good ones", request_bytes({}, {"TERM=x", "HOME=/tmp"}, 0), "never passed on"},
        {"a variable without value", request_bytes({}, {"TERM"}, 0), "never passed on"},
        {"a variable without name", request_bytes({}, {"=x"}, 0), "never passed on"},
        {"an empty variable", request_bytes({}, {""}, 0), "never passed on"},
        {"too many variables", request_bytes({}, std::vector<std::string>(200, "TERM=x"), 0), "counts more entries"},
        {"a umask of more than nine bits", request_bytes({}, {}, 01000), "impossible umask"},
        {"a huge umask", request_bytes({}, {}, std::numeric_limits<std::uint64_t>::max()), "impossible umask"},
        {"more arguments than there are", Encoder().number(1).number(2).text("").bytes(), "counts more entries"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const Caught caught = refusal_of(row.bytes);
        CHECK(caught.status == 77);
        CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
    }
}

TEST_CASE("a request with too few or too many descriptors is refused")
{
    for (const std::size_t count : {0U, 1U, 3U, 5U, 8U}) {
        CAPTURE(count);
        const Caught caught = refusal_of(request_bytes({}, {}, 0), count);
        CHECK(caught.status == 77);
        CHECK(has(caught.text, "exactly 4 descriptors, this one has " + std::to_string(count)));
    }
}

TEST_CASE("a descriptor for what is on the terminal is refused, and so is a missing one")
{
    const std::string bytes = terminal_bytes({1, 0, 1, 24, 80, 0, 0});
    CHECK(refusal_of(bytes, 2).status == 0);
    for (const std::size_t count : {0U, 1U, 3U, 4U}) {
        CAPTURE(count);
        CHECK(has(refusal_of(bytes, count).text, "exactly 2 descriptors, this one has " + std::to_string(count)));
    }
}

TEST_CASE("a connection that closes before its request is refused")
{
    auto [left, right] = make_channel();
    left.reset();
    const FdRef receiver = right;
    CHECK(has(failure_of([&] { return receive_request(receiver, soon()); }).text, "closed before a request came"));
}

TEST_CASE("what the runner says arrives at the wrapper")
{
    const auto failure = decode_runner_message(encode(FailureReport{ExitStatus::limit, "text\n"}));
    REQUIRE(std::holds_alternative<FailureReport>(failure));
    CHECK(std::get<FailureReport>(failure).status == ExitStatus::limit);
    CHECK(std::get<FailureReport>(failure).text == "text\n");
    CHECK(std::get<FailureReport>(failure).kind == FailureKind::other);
    const auto of_kind = decode_runner_message(encode(FailureReport{ExitStatus::denied, "no", FailureKind::outside_roots}));
    CHECK(std::get<FailureReport>(of_kind).kind == FailureKind::outside_roots);
    const auto unknown = static_cast<FailureKind>(static_cast<int>(last_failure_kind) + 1);
    CHECK_THROWS_AS(static_cast<void>(decode_runner_message(encode(FailureReport{ExitStatus::denied, "no", unknown}))), ProtocolError);
    const auto notice = decode_runner_message(encode(Notice{""}));
    REQUIRE(std::holds_alternative<Notice>(notice));
    CHECK(std::get<Notice>(notice).text.empty());
    const auto begun = decode_runner_message(encode(SessionBegun{"0123abcd"}));
    REQUIRE(std::holds_alternative<SessionBegun>(begun));
    CHECK(std::get<SessionBegun>(begun).id == "0123abcd");
    CHECK(std::holds_alternative<SignalHeard>(decode_runner_message(encode(RunnerMessage(SignalHeard{})))));
    for (const bool takes_long : {false, true}) {
        const auto preparing = std::get<Preparing>(decode_runner_message(encode(Preparing{"waiting", takes_long})));
        CHECK(preparing.doing == "waiting");
        CHECK(preparing.takes_long == takes_long);
    }
    for (const auto &[by_signal, value] : {std::pair{false, 0}, {false, 1}, {false, 42}, {false, 255}, {true, 9}, {true, 64}}) {
        const auto ended = decode_runner_message(encode(AgentEnded{by_signal, value}));
        REQUIRE(std::holds_alternative<AgentEnded>(ended));
        CHECK(std::get<AgentEnded>(ended).by_signal == by_signal);
        CHECK(std::get<AgentEnded>(ended).value == value);
    }
    CHECK(std::holds_alternative<TerminalOpened>(decode_runner_message(encode(RunnerMessage(TerminalOpened{})))));
    for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, 64}) {
        const auto stopped = decode_runner_message(encode(AgentStopped{number}));
        REQUIRE(std::holds_alternative<AgentStopped>(stopped));
        CHECK(std::get<AgentStopped>(stopped).number == number);
        CHECK(asks_for_terminal(std::get<AgentStopped>(stopped)) == (number == SIGTTIN || number == SIGTTOU));
    }
}

TEST_CASE("a text that would not fit into a packet is cut")
{
    const std::string longest(16 * 1024, 'x');
    const std::string bytes = encode(Notice{longest + "y"});
    CHECK(bytes.size() < packet_limit);
    CHECK((std::get<Notice>(decode_runner_message(bytes)).text == longest));
    CHECK((std::get<FailureReport>(decode_runner_message(encode(FailureReport{ExitStatus::denied, longest + "y"}))).text == longest));
}

TEST_CASE("a message of the runner that is not one is refused")
{
    const std::vector<std::string> rows = {
        "",
        "x",
        Encoder().number(1).bytes(),
        Encoder().number(99).number(0).number(0).bytes(),
        Encoder().number(2).number(77).bytes(),
        Encoder().number(2).number(0).text("success").bytes(),
        Encoder().number(2).number(256).text("success once more").bytes(),
        Encoder().number(2).number((std::uint64_t{1} << 32U) + 77).text("cut to 77").bytes(),
        Encoder().number(3).bytes(),
        Encoder().number(4).number(0).bytes(),
        Encoder().number(4).number(0).number(256).bytes(),
        Encoder().number(4).number(2).number(0).bytes(),
        Encoder().number(4).number(0).number(std::numeric_limits<std::uint64_t>::max()).bytes(),
        encode(Notice{"x"}) + "x",
        encode(SessionBegun{"x"}) + "x",
        encode(SignalHeard{}) + "x",
        Encoder().number(10).text("waiting").number(2).bytes(),
        encode(AgentEnded{false, 0}) + "x",
        encode(FailureReport{ExitStatus::denied, "x"}) + "x",
        encode(RunnerMessage(TerminalOpened{})) + "x",
        encode(RunnerMessage(AgentStopped{SIGTSTP})) + "x",
        Encoder().number(7).bytes(),
        Encoder().number(7).number(65).bytes(),
    };
    for (const auto &bytes : rows)
        CHECK_THROWS_AS(static_cast<void>(decode_runner_message(bytes)), ProtocolError);
}

TEST_CASE("only six signals are ever forwarded, and not the one that opens a debugger")
{
    for (int number = -1; number <= 65; ++number) {
        CAPTURE(number);
        const bool forwarded =
            number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP || number == SIGUSR2 || number == SIGTSTP;
        CHECK(is_forwarded_signal(number) == forwarded);
        const std::string bytes = encode(WrapperMessage(ForwardSignal{number}));
        if (forwarded) {
            CHECK(std::get<ForwardSignal>(decode_wrapper_message(bytes)).number == number);
            CHECK_FALSE(std::get<ForwardSignal>(decode_wrapper_message(bytes)).from_keyboard);
        } else
            CHECK_THROWS_AS(static_cast<void>(decode_wrapper_message(bytes)), ProtocolError);
    }
}

TEST_CASE("what the wrapper says after its request is short and arrives")
{
    for (const bool with_keyboard : {false, true}) {
        CHECK(std::get<TerminalReady>(decode_wrapper_message(encode(TerminalReady{with_keyboard}))).with_keyboard == with_keyboard);
        CHECK(std::get<ContinueAgent>(decode_wrapper_message(encode(ContinueAgent{with_keyboard}))).with_keyboard == with_keyboard);
        CHECK(std::get<ForwardSignal>(decode_wrapper_message(encode(ForwardSignal{SIGINT, with_keyboard}))).from_keyboard == with_keyboard);
    }
    for (const WrapperMessage &message : {WrapperMessage(TerminalReady{}), WrapperMessage(ForwardSignal{SIGTERM})})
        CHECK(encode(message).size() <= small_message_limit);
}

TEST_CASE("a message of the wrapper that is not one is refused")
{
    const std::string term = encode(WrapperMessage(ForwardSignal{SIGTERM}));
    const std::vector<std::string> rows = {
        "",
        Encoder().number(5).bytes(),
        Encoder().number(4).number(SIGTERM).bytes(),
        Encoder().number(6).bytes(), // the runner's own
        Encoder().number(7).bytes(),
        Encoder().number(99).bytes(),
        term + "x",
        encode(WrapperMessage(TerminalReady{})) + "x",
        encode(WrapperMessage(ContinueAgent{})) + "x",
        Encoder().number(5).number((std::uint64_t{1} << 32U) + SIGTERM).number(0).bytes(), // SIGTERM after a careless cast
        Encoder().number(5).number(SIGTERM).bytes(),
        Encoder().number(5).number(SIGTERM).number(2).bytes(),
        Encoder().number(9).bytes(),
    };
    for (const auto &bytes : rows)
        CHECK_THROWS_AS(static_cast<void>(decode_wrapper_message(bytes)), ProtocolError);
}

} // namespace request_test
