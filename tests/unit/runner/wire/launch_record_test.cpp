// The launch record and what pi-agent-exec answers: runner/wire/answer.hpp
#include "runner/inside/agent_process.hpp"

#include "support/descriptors.hpp"
#include "support/failure.hpp"

#include <csignal>
#include <limits>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace launch_record_test {

namespace {

Deadline soon()
{
    return in_seconds(10);
}

std::array<UniqueFd, 3> three_files()
{
    return {open_path("/dev/null"), open_path("/dev/zero"), open_path("/etc/passwd")};
}

Encoder launch_of(std::uint64_t type, const OnTerminal &on_terminal = {})
{
    Encoder encoder;
    encoder.number(type).text("/bin/pi").texts({"pi"}).texts({}).text("/p").text("").number(7).number(077);
    for (const bool one : on_terminal)
        encoder.number(one ? 1 : 0);
    encoder.number(0).texts({}).number(1024).number(0).number(0).number(0).number(0).number(0).texts({}).texts({}).number(15).number(0);
    return encoder;
}

} // namespace

TEST_CASE("a launch record arrives as it was sent, its standard descriptors in order")
{
    const LaunchRecord record{"/usr/lib/pi-agent/agent/bin/pi",
                              {"pi", "", "-p", "a\n\xff $HOME %n", std::string(500'000, 'x')},
                              {"A=1", "B=", "C=x=y"},
                              "/home/alice/projects",
                              "sub/dir with\nodd \xff bytes",
                              0xfedcba9876543210,
                              022,
                              {},
                              Restrictions::none,
                              {"/home/alice/.nvm", "odd \n\xff"},
                              20000,
                              8192,
                              Tracing::always,
                              4026531836,
                              false,
                              true,
                              {"mlock", "mlockall"},
                              {"personality"},
                              3,
                              {3000, 65535}};
    const auto stdio = three_files();
    const auto connections = open_path("/etc/group");
    auto [left, right] = make_channel();
    std::thread sending([&, channel = FdRef(left)] {
        send_stdio(channel, stdio, connections, soon());
        send_launch(channel, record, UniqueFd(), UniqueFd(), soon());
    });
    const ReceivedLaunch launch = receive_launch(right, soon());
    sending.join();
    CHECK(launch.record.binary == record.binary);
    CHECK((launch.record.arguments == record.arguments));
    CHECK(launch.record.environment == record.environment);
    CHECK(launch.record.project == record.project);
    CHECK(launch.record.below == record.below);
    CHECK(launch.record.cwd_inode == record.cwd_inode);
    CHECK(launch.record.umask == record.umask);
    CHECK(launch.record.open_files == record.open_files);
    CHECK(launch.record.most_open_files == record.most_open_files);
    CHECK(launch.record.mount_points == record.mount_points);
    CHECK(launch.record.tracing == record.tracing);
    CHECK(launch.record.hosts_processes == record.hosts_processes);
    CHECK(launch.record.keeps_project == record.keeps_project);
    CHECK(launch.record.denied_calls == record.denied_calls);
    CHECK(launch.record.allowed_calls == record.allowed_calls);
    CHECK(launch.record.address_families == record.address_families);
    CHECK(launch.record.ports == record.ports);
    CHECK(inode_of(launch.connections) == inode_of(connections));
    CHECK_FALSE(launch.terminal.is_open());
    for (std::size_t index = 0; index < 3; ++index)
        CHECK(inode_of(launch.stdio[index]) == inode_of(stdio[index]));
}

TEST_CASE("the session's terminal takes the place of each descriptor that is on one, and a mode changer comes beside it")
{
    const auto terminal = open_path("/etc/group");
    const auto changer = open_path("/etc/hosts");
    for (unsigned bits = 1; bits < 16; ++bits) {
        CAPTURE(bits);
        LaunchRecord record;
        record.on_terminal = {(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0};
        record.has_mode_changer = (bits & 8U) != 0;
        auto stdio = three_files();
        std::array<ino_t, 3> expected{};
        for (std::size_t index = 0; index < 3; ++index) {
            expected[index] = inode_of(record.on_terminal[index] ? FdRef(terminal) : FdRef(stdio[index]));
            if (record.on_terminal[index]) stdio[index].reset();
        }
        auto [left, right] = make_channel();
        send_stdio(left, stdio, FdRef(-1), soon());
        send_launch(left, record, terminal, changer, soon());
        const ReceivedLaunch launch = receive_launch(right, soon());
        CHECK(launch.terminal.is_open() == ((bits & 7U) != 0));
        if (launch.terminal) CHECK(inode_of(launch.terminal) == inode_of(terminal));
        CHECK(launch.mode_changer.is_open() == record.has_mode_changer);
        if (launch.mode_changer) CHECK(inode_of(launch.mode_changer) == inode_of(changer));
        CHECK(launch.record.on_terminal == record.on_terminal);
        for (std::size_t index = 0; index < 3; ++index)
            CHECK(inode_of(launch.stdio[index]) == expected[index]);
    }
}

TEST_CASE("what is not exactly one launch record is refused, and its descriptors are closed")
{
    struct Row {
        std::string what;
        std::string bytes;
        std::size_t descriptors = 3;
        std::uint64_t first = 20;
        std::size_t late_descriptors = 0;
    };
    const std::string good = launch_of(16).bytes();
    const std::vector<Row> rows = {
        {"another type", launch_of(1).bytes()},
        {"another first type", good, 3, 16},
        {"cut", good.substr(0, good.size() - 1)},
        {"cut in the middle", good.substr(0, 40)},
        {"longer", good + "x"},
        {"nothing", ""},
        {"no descriptor", good, 0},
        {"a descriptor too few", good, 2},
        {"a descriptor too many", good, 4},
        {"descriptors with the record", good, 3, 20, 3},
        {"a terminal that nobody wants", good, 3, 20, 1},
        {"a terminal that is missing", launch_of(16, {true, true, true}).bytes(), 0, 20, 0},
        {"descriptors beside a terminal", launch_of(16, {true, true, true}).bytes(), 1, 20, 1},
        {"none beside a terminal", launch_of(16, {true, false, true}).bytes(), 0, 20, 1},
        {"a count that lies", Encoder().number(16).text("/bin/pi").number(70'001).bytes()},
    };
    const auto null = open_path("/dev/null");
    for (const auto &row : rows) {
        CAPTURE(row.what);
        auto [left, right] = make_channel();
        send_packet(left, Encoder().number(row.first).bytes(), std::vector<int>(row.descriptors, null.get()), soon());
        send_record(left, row.bytes, std::vector<int>(row.late_descriptors, null.get()), soon());
        const auto before = count_open_descriptors();
        const FdRef receiver = right;
        CHECK(failure_of([&] { return receive_launch(receiver, soon()); }).status == 77);
        CHECK(count_open_descriptors() == before);
    }
    auto [left, right] = make_channel();
    left.reset();
    const FdRef receiver = right;
    CHECK(has(failure_of([&] { return receive_launch(receiver, soon()); }).text, "no standard descriptors came"));
}

TEST_CASE("the umask is nine bits, whatever was sent")
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    Encoder encoder;
    encoder.number(16).text("").texts({}).texts({}).text("").text("").number(0).number(std::numeric_limits<std::uint64_t>::max());
    encoder.number(0).number(0).number(0).number(0).texts({}).number(0).number(0).number(0).number(0).number(0).number(0);
    encoder.texts({}).texts({}).number(15).number(0);
    send_packet(left, Encoder().number(20).bytes(), {null.get(), null.get(), null.get()}, soon());
    send_record(left, encoder.bytes(), {}, soon());
    CHECK(receive_launch(right, soon()).record.umask == 0777);
}

TEST_CASE("what pi-agent-exec says arrives")
{
    CHECK(std::holds_alternative<ExecReady>(decode_exec_message(encode(ExecMessage(ExecReady{})))));
    CHECK(std::get<ExecStopped>(decode_exec_message(encode(ExecMessage(ExecStopped{SIGTTIN})))).number == SIGTTIN);
    CHECK(std::holds_alternative<SignalHeard>(decode_exec_message(encode(ExecMessage(SignalHeard{})))));
    const auto failed = decode_exec_message(encode(ExecMessage(ExecFailed{"why\n\xff"})));
    REQUIRE(std::holds_alternative<ExecFailed>(failed));
    CHECK(std::get<ExecFailed>(failed).text == "why\n\xff");
    for (const auto &[by_signal, value] : {std::pair{false, 0}, {false, 255}, {true, 9}}) {
        const auto ended = decode_exec_message(encode(ExecMessage(ExecEnded{by_signal, value})));
        REQUIRE(std::holds_alternative<ExecEnded>(ended));
        CHECK(std::get<ExecEnded>(ended).by_signal == by_signal);
        CHECK(std::get<ExecEnded>(ended).value == value);
    }
}

TEST_CASE("a failure's text is cut by the sender and refused when a hostile sender did not")
{
    const std::string longest(4096, 'x');
    CHECK((std::get<ExecFailed>(decode_exec_message(encode(ExecMessage(ExecFailed{longest + "y"})))).text == longest));
    CHECK_THROWS_AS(static_cast<void>(decode_exec_message(Encoder().number(18).text(longest + "y").bytes())), ProtocolError);
}

TEST_CASE("a message of pi-agent-exec that is not one is refused")
{
    const std::vector<std::string> rows = {
        "",
        "x",
        Encoder().number(16).bytes(),
        Encoder().number(99).bytes(),
        Encoder().number(18).bytes(),
        Encoder().number(19).number(0).bytes(),
        Encoder().number(19).number(0).number(256).bytes(),
        Encoder().number(19).number(2).number(0).bytes(),
        Encoder().number(19).number(1).number(std::numeric_limits<std::uint64_t>::max()).bytes(),
        encode(ExecMessage(ExecReady{})) + "x",
        encode(ExecMessage(ExecStopped{SIGTSTP})) + "x",
        encode(ExecMessage(SignalHeard{})) + "x",
        Encoder().number(21).bytes(),
        Encoder().number(21).number(65).bytes(),
        encode(ExecMessage(ExecFailed{"x"})) + "x",
        encode(ExecMessage(ExecEnded{false, 0})) + "x",
    };
    for (const auto &bytes : rows)
        CHECK_THROWS_AS(static_cast<void>(decode_exec_message(bytes)), ProtocolError);
}

} // namespace launch_record_test
