// Packets, records and their encoding against peers that break every rule: common/base/channel.hpp
#include "common/base/channel.hpp"

#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/skipped.hpp"

#include <limits>
#include <numeric>
#include <thread>

using namespace pi_agent;
using namespace pi_agent::test;

namespace channel_test {

namespace {

constexpr auto moment = std::chrono::milliseconds(50);

Deadline soon()
{
    return in_seconds(10);
}

// The first packet of a record that announces `size` bytes.
std::string head_of(std::uint64_t size)
{
    auto [left, right] = make_channel();
    send_record(left, "", {}, soon());
    const auto head = receive_packet(right, soon());
    REQUIRE(head);
    REQUIRE(head->bytes.size() == 16);
    return head->bytes.substr(0, 8) + Encoder().number(size).bytes();
}

} // namespace

TEST_CASE("a packet arrives with its bytes and its descriptors, which close on exec")
{
    auto [left, right] = make_channel();
    const auto file = open_path("/etc/passwd");
    const auto null = open_path("/dev/null");
    const std::string bytes("a\0b\xff\n", 5);
    send_packet(left, bytes, {file.get(), null.get()}, soon());
    const auto packet = receive_packet(right, soon());
    REQUIRE(packet);
    CHECK(packet->bytes == bytes);
    REQUIRE(packet->fds.size() == 2);
    CHECK(inode_of(packet->fds[0]) == inode_of(file));
    CHECK(inode_of(packet->fds[1]) == inode_of(null));
    for (const auto &fd : packet->fds)
        CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(left.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a record whose pieces are always there, and too many, is not waited for beyond its deadline")
{
    auto [left, right] = make_channel();
    std::thread sender([&channel = left] {
        try {
            send_packet(channel, head_of(record_limit).substr(0, 16), {}, soon());
            for (;;)
                send_packet(channel, "x", {}, soon());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): the reader has had enough
        }
    });
    const auto began = Clock::now();
    CHECK_THROWS_AS(receive_record(right, Clock::now() + moment), DeadlineExceeded);
    CHECK(Clock::now() - began < std::chrono::seconds(5));
    right.reset();
    sender.join();
}

TEST_CASE("packets keep their order and their borders")
{
    auto [left, right] = make_channel();
    for (const std::string text : {"one", "two", "three"})
        send_packet(left, text, {}, soon());
    for (const std::string text : {"one", "two", "three"})
        CHECK(receive_packet(right, soon())->bytes == text);
}

TEST_CASE("the largest packet with the most descriptors arrives whole")
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const std::string bytes(packet_limit, 'x');
    send_packet(left, bytes, std::vector<int>(packet_fd_limit, null.get()), soon());
    const auto packet = receive_packet(right, soon());
    REQUIRE(packet);
    CHECK(packet->bytes == bytes);
    CHECK(packet->fds.size() == packet_fd_limit);
}

TEST_CASE("an empty, an oversized or an overloaded packet is never sent")
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const FdRef channel = left;
    CHECK(failure_of([&] { send_packet(channel, "", {}, soon()); }).status == 70);
    CHECK(failure_of([&] { send_packet(channel, std::string(packet_limit + 1, 'x'), {}, soon()); }).status == 70);
    CHECK(failure_of([&] { send_packet(channel, "x", std::vector<int>(packet_fd_limit + 1, null.get()), soon()); }).status == 70);
    CHECK_FALSE(wait_for_input(right, Clock::now()));
}

TEST_CASE("a refused packet leaks none of its descriptors")
{
    struct Row {
        std::string what;
        std::size_t bytes;
        std::size_t descriptors;
        std::string refusal;
    };
    const std::vector<Row> rows = {
        {"a byte too many", packet_limit + 1, 0, "larger than 32768 bytes"},
        {"far too many bytes", 3 * packet_limit, 2, "larger than 32768 bytes"},
        {"a descriptor too many", 1, packet_fd_limit + 1, "too many descriptors"},
        {"two descriptors too many", 1, packet_fd_limit + 2, "too many descriptors"},
        {"far too many descriptors", 1, 60, "too many descriptors"},
        {"too much of both", packet_limit + 1, 60, "too many descriptors"},
    };
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const auto before = count_open_descriptors();
    const FdRef receiver = right;
    for (const auto &row : rows) {
        CAPTURE(row.what);
        send_raw(left, std::string(row.bytes, 'x'), std::vector<int>(row.descriptors, null.get()));
        const auto caught = failure_of([&] { return receive_packet(receiver, soon()); });
        CHECK(caught.status == 77);
        CHECK(has(caught.text, row.refusal));
        CHECK(count_open_descriptors() == before);
    }
    send_packet(left, "still usable", {}, soon());
    CHECK(receive_packet(right, soon())->bytes == "still usable");
}

TEST_CASE("where descriptors are never held, a packet with one stays unread")
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const FdRef receiver = right;
    send_packet(left, "bytes", {}, soon());
    send_packet(left, "with one", {null.get()}, soon());
    CHECK(receive_plain_packet(right, soon())->bytes == "bytes");
    const auto before = count_open_descriptors();
    for (int time = 0; time < 2; ++time) {
        const auto caught = failure_of([&] { return receive_plain_packet(receiver, soon()); });
        CHECK(caught.status == 77);
        CHECK(has(caught.text, "with a descriptor was refused"));
    }
    CHECK(count_open_descriptors() == before);
    CHECK(receive_packet(right, soon())->fds.size() == 1);
    left.reset();
    CHECK_FALSE(receive_plain_packet(right, soon()));
}

TEST_CASE("a descriptor of its sender that the kernel adds to a packet is closed with it")
{
    constexpr int pass_pidfd = 76; // SO_PASSPIDFD, Linux 6.5
    auto [left, right] = make_channel();
    const int on = 1;
    if (::setsockopt(right.get(), SOL_SOCKET, pass_pidfd, &on, sizeof on) != 0) return skipped("this kernel has no SO_PASSPIDFD");
    const FdRef receiver = right;
    const auto before = count_open_descriptors();
    for (int count = 0; count < 20; ++count) {
        send_raw(left, "x");
        const auto caught = failure_of([&] { return receive_packet(receiver, soon()); });
        CHECK(caught.status == 77);
        CHECK(has(caught.text, "process descriptor"));
    }
    CHECK(count_open_descriptors() == before);
}

TEST_CASE("a peer that is gone is nothing to read and EPIPE to write")
{
    auto [left, right] = make_channel();
    send_packet(left, "last words", {}, soon());
    left.reset();
    CHECK(wait_for_input(right, soon()));
    CHECK(receive_packet(right, soon())->bytes == "last words");
    CHECK_FALSE(receive_packet(right, soon()));
    CHECK_FALSE(receive_record(right, soon()));
    const FdRef channel = right;
    CHECK(errno_of([&] { send_packet(channel, "x", {}, soon()); }) == EPIPE);
}

TEST_CASE("a peer that goes while something for it is unread is nothing to read as well")
{
    auto [left, right] = make_channel();
    send_packet(right, "never read", {}, soon());
    left.reset();
    CHECK_FALSE(receive_packet(right, soon()));
}

TEST_CASE("nobody waits longer than the deadline")
{
    auto [left, right] = make_channel();
    const FdRef sender = left;
    const FdRef receiver = right;
    const auto start = Clock::now();
    CHECK_FALSE(wait_for_input(receiver, start + moment));
    CHECK_THROWS_AS(static_cast<void>(receive_packet(receiver, start + 2 * moment)), DeadlineExceeded);
    const auto fill = [&] {
        for (;;)
            send_packet(sender, std::string(packet_limit, 'x'), {}, start + 3 * moment);
    };
    CHECK_THROWS_AS(fill(), DeadlineExceeded);
    CHECK(Clock::now() >= start + 3 * moment);
    CHECK(Clock::now() < start + std::chrono::seconds(10));
}

TEST_CASE("a deadline holds for a whole record, however often a slow peer sends a piece")
{
    auto [left, right] = make_channel();
    const auto start = Clock::now();
    std::thread dripping([&, channel = FdRef(left)] {
        send_raw(channel, head_of(record_limit));
        for (int count = 0; count < 40; ++count) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            send_raw(channel, "x");
        }
    });
    const FdRef receiver = right;
    CHECK_THROWS_AS(static_cast<void>(receive_record(receiver, start + 2 * moment)), DeadlineExceeded);
    dripping.join();
}

TEST_CASE("a record of any size up to the limit arrives whole, its descriptors with it")
{
    const auto null = open_path("/dev/null");
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, packet_limit - 1, packet_limit, packet_limit + 1, 3 * packet_limit + 17, record_limit}) {
        CAPTURE(size);
        auto [left, right] = make_channel();
        std::string bytes(size, '\0');
        std::iota(bytes.begin(), bytes.end(), '\0');
        std::thread sending([&, channel = FdRef(left)] { send_record(channel, bytes, {null.get(), null.get()}, soon()); });
        const auto record = receive_record(right, soon());
        sending.join();
        REQUIRE(record);
        CHECK((record->bytes == bytes)); // not printed: up to 4 MiB
        CHECK(record->fds.size() == 2);
    }
}

TEST_CASE("a record goes on where a peer that did not read stopped it")
{
    const auto [left, right] = make_channel();
    const std::string bytes(record_limit, 'x');
    OutgoingRecord record(bytes, {});
    std::size_t rounds = 0;
    std::optional<Packet> received;
    std::thread reader; // begins once the sender has been stopped
    for (bool is_sent = false; !is_sent; ++rounds) {
        try {
            record.send(left, Clock::now() + (rounds == 0 ? moment * 0 : moment));
            is_sent = true;
        } catch (const DeadlineExceeded &) {
            if (rounds == 0) reader = std::thread([&, channel = FdRef(right)] { received = receive_record(channel, soon()); });
        }
    }
    REQUIRE(rounds > 1);
    reader.join();
    REQUIRE(received);
    CHECK((received->bytes == bytes));
}

TEST_CASE("a record beyond the limit is neither sent nor received")
{
    auto [left, right] = make_channel();
    const FdRef sender = left;
    const auto caught = failure_of([&] { send_record(sender, std::string(record_limit + 1, 'x'), {}, soon()); });
    CHECK(caught.status == 64);
    CHECK(has(caught.text, "larger than 4194304 bytes"));
    CHECK_FALSE(wait_for_input(right, Clock::now()));
    const FdRef receiver = right;
    for (const std::uint64_t size : {std::uint64_t{record_limit} + 1, std::numeric_limits<std::uint64_t>::max()}) {
        CAPTURE(size);
        send_raw(left, head_of(size));
        CHECK(failure_of([&] { return receive_record(receiver, soon()); }).status == 77);
    }
}

TEST_CASE("a record that breaks the protocol is refused by name")
{
    struct Row {
        std::string what;
        std::vector<std::string> packets;
        std::string refusal;
    };
    const std::string foreign = Encoder().number(0x4142434445464748).number(1).bytes();
    const std::vector<Row> rows = {
        {"another version", {foreign, "x"}, "another protocol version"},
        {"a head that is no head", {"x"}, "ends too early"},
        {"half a head", {head_of(1).substr(0, 12)}, "ends too early"},
        {"a head that goes on", {head_of(1) + "x"}, "longer than its fields"},
        {"cut short before its bytes", {head_of(1)}, "cut short"},
        {"cut short between its pieces", {head_of(4), "abc"}, "cut short"},
        {"longer than it said", {head_of(4), "abc", "de"}, "longer than it said"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        auto [left, right] = make_channel();
        for (const auto &packet : row.packets)
            send_raw(left, packet);
        left.reset();
        const FdRef receiver = right;
        const auto caught = failure_of([&] { return receive_record(receiver, soon()); });
        CHECK(caught.status == 77);
        CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
    }
}

TEST_CASE("descriptors in the middle of a record are refused and closed")
{
    auto [left, right] = make_channel();
    const auto null = open_path("/dev/null");
    const auto before = count_open_descriptors();
    send_raw(left, head_of(2), {null.get()});
    send_raw(left, "ab", {null.get()});
    const FdRef receiver = right;
    CHECK(has(failure_of([&] { return receive_record(receiver, soon()); }).text, "unexpected descriptors"));
    CHECK(count_open_descriptors() == before);
}

TEST_CASE("what is encoded is decoded, byte for byte")
{
    const std::vector<std::uint64_t> numbers = {0, 1, 255, 256, 0x80, 0xff00ff00ff00ff00, std::numeric_limits<std::uint64_t>::max()};
    const std::vector<std::string> texts = {"", "plain", std::string("with\0nul", 8), "\xff\xfe", std::string(100'000, 'x')};
    Encoder encoder;
    for (const auto number : numbers)
        encoder.number(number);
    encoder.texts(texts).texts({}).text("end");
    Decoder decoder(encoder.bytes());
    for (const auto number : numbers)
        CHECK(decoder.number() == number);
    CHECK(decoder.texts(texts.size()) == texts);
    CHECK(decoder.texts(0).empty());
    CHECK(decoder.text() == "end");
    CHECK_NOTHROW(decoder.end());
    CHECK(Encoder().number(0x0102030405060708).bytes() == "\x08\x07\x06\x05\x04\x03\x02\x01");
}

TEST_CASE("every message that is cut anywhere is refused")
{
    const std::string whole = Encoder().number(7).text("text").texts({"a", "", "bc"}).bytes();
    const auto decode = [](std::string_view bytes) {
        Decoder decoder(bytes);
        static_cast<void>(decoder.number());
        static_cast<void>(decoder.text());
        static_cast<void>(decoder.texts(3));
        decoder.end();
    };
    CHECK_NOTHROW(decode(whole));
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK_THROWS_AS(decode(std::string_view(whole).substr(0, length)), ProtocolError);
    CHECK_THROWS_AS(decode(whole + '\0'), ProtocolError);
}

TEST_CASE("lengths and counts that lie are refused before memory is taken for them")
{
    for (const std::uint64_t lie : {std::uint64_t{9}, std::uint64_t{1} << 40U, std::numeric_limits<std::uint64_t>::max()}) {
        CAPTURE(lie);
        const std::string bytes = Encoder().number(lie).bytes() + std::string(8, '\0');
        CHECK_THROWS_AS(static_cast<void>(Decoder(bytes).text()), ProtocolError);
        CHECK_THROWS_AS(static_cast<void>(Decoder(bytes).texts(std::numeric_limits<std::size_t>::max())), ProtocolError);
    }
    const std::string two = Encoder().texts({"a", "b"}).bytes();
    CHECK(Decoder(two).texts(2).size() == 2);
    CHECK_THROWS_AS(static_cast<void>(Decoder(two).texts(1)), ProtocolError);
}

TEST_CASE("a flag has two values, and a third breaks the protocol")
{
    const std::string bytes = Encoder().number(0).number(1).number(2).bytes();
    Decoder decoder(bytes);
    CHECK(!decoder.flag());
    CHECK(decoder.flag());
    CHECK_THROWS_AS(static_cast<void>(decoder.flag()), ProtocolError);
}

} // namespace channel_test
