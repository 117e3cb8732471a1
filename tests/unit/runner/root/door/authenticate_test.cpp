// Which sockets and which SUDO_UID name a caller: runner/root/door/admission.hpp
#include "runner/root/door/admission.hpp"

#include "common/base/channel.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <limits>

using namespace pi_agent;
using namespace pi_agent::test;

namespace authenticate_test {

namespace {

// A channel whose creator is `uid`; the process itself stays root.
UniqueFd channel_made_by(uid_t uid)
{
    REQUIRE(::seteuid(uid) == 0);
    auto ends = make_channel();
    REQUIRE(::seteuid(0) == 0);
    return std::move(ends.second);
}

UniqueFd pair_of(int domain, int type)
{
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(domain, type | SOCK_CLOEXEC, 0, ends.data()) == 0);
    ::close(ends[0]);
    return UniqueFd::adopt(ends[1]);
}

std::string answer_for(FdRef channel, const std::optional<std::string> &sudo_uid)
{
    try {
        return authenticate(AsRoot::claim(), channel, sudo_uid).name;
    } catch (const Failure &failure) {
        return std::to_string(static_cast<int>(failure.status())) + " " + failure.what();
    }
}

} // namespace

TEST_CASE("a uid is a canonical decimal below the value that means none")
{
    struct Row {
        std::string text;
        std::optional<uid_t> uid;
    };
    const std::vector<Row> rows = {
        {"0", 0},
        {"1", 1},
        {"9", 9},
        {"10", 10},
        {"1000", 1000},
        {"65534", 65534},
        {"2147483648", 2147483648},
        {"4294967294", 4294967294},
        {"4294967295", std::nullopt}, // CVE-2019-14287
        {"4294967296", std::nullopt}, // 0 after a careless cast
        {"4294968296", std::nullopt}, // 1000 after a careless cast
        {"9999999999", std::nullopt},
        {"10000000000", std::nullopt},
        {"18446744073709551616", std::nullopt},
        {"18446744073709552616", std::nullopt},
        {std::string(10'000, '1'), std::nullopt},
        {"", std::nullopt},
        {"-0", std::nullopt},
        {"-1", std::nullopt},
        {"+1000", std::nullopt},
        {"00", std::nullopt},
        {"01000", std::nullopt},
        {"0x3e8", std::nullopt},
        {"1e3", std::nullopt},
        {"1000.0", std::nullopt},
        {" 1000", std::nullopt},
        {"1000 ", std::nullopt},
        {"1000\n", std::nullopt},
        {"1 000", std::nullopt},
        {"1'000", std::nullopt},
        {"alice", std::nullopt},
        {"#1000", std::nullopt},
        {std::string("1000\0", 5), std::nullopt},
        {std::string("1\0"
                     "0",
                     3),
         std::nullopt},
        {"\xd9\xa1", std::nullopt}, // a digit, but not of ours
    };
    for (const auto &row : rows) {
        CAPTURE(row.text);
        const auto uid = parse_uid(row.text);
        CHECK(uid.has_value() == row.uid.has_value());
        if (uid && row.uid) CHECK(uid->value() == *row.uid);
    }
}

TEST_CASE("the caller is whom sudo names, when the same uid made the socket" * doctest::skip(not_root()))
{
    for (const Account &account : {user_account(), agent_account()}) {
        const UniqueFd channel = channel_made_by(account.uid.value());
        const Account caller = authenticate(AsRoot::claim(), channel, std::to_string(account.uid.value()));
        CHECK(caller.name == account.name);
        CHECK(caller.uid == account.uid);
        CHECK(caller.gid == account.gid);
    }
}

TEST_CASE("sudo's word and the socket's creator must agree" * doctest::skip(not_root()))
{
    constexpr uid_t unknown = 4123456789U; // of no account
    struct Row {
        std::string what;
        uid_t creator;
        std::optional<std::string> sudo_uid;
        std::string refusal;
    };
    const std::vector<Row> rows = {
        {"no sudo", 65534, std::nullopt, "77 denied: not called through sudo"},
        {"another user's socket", 1, "65534",
         "77 denied: the socket on standard input was made by uid 1, but sudo was called by uid 65534"},
        {"root's socket", 0, "65534", "77 denied: the socket on standard input was made by uid 0, but sudo was called by uid 65534"},
        {"one's own socket, another's SUDO_UID", 65534, "1", "made by uid 65534, but sudo was called by uid 1"},
        {"root calling for root", 0, "0", "77 denied: root cannot run the agent"},
        {"a user who says root", 65534, "0", "77 denied: root cannot run the agent"},
        {"minus one", 65534, "-1", "77 denied: SUDO_UID is not a user id"},
        {"minus one, unsigned", 65534, "4294967295", "77 denied: SUDO_UID is not a user id"},
        {"a leading zero", 65534, "065534", "77 denied: SUDO_UID is not a user id"},
        {"a space", 65534, "65534 ", "77 denied: SUDO_UID is not a user id"},
        {"a name", 65534, "nobody", "77 denied: SUDO_UID is not a user id"},
        {"nothing", 65534, "", "77 denied: SUDO_UID is not a user id"},
        {"65534 and 2^32", 65534, "4295032830", "77 denied: SUDO_UID is not a user id"},
        {"an unknown user", unknown, "4123456789", "77 denied: uid 4123456789 is not in the user database"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.what);
        const UniqueFd channel = channel_made_by(row.creator);
        const std::string answer = answer_for(channel, row.sudo_uid);
        CHECK_MESSAGE(has(answer, row.refusal), answer);
    }
}

TEST_CASE("the socket's creator counts, not who holds it now" * doctest::skip(not_root()))
{
    // Made by a process that is gone, handed to another one: still its creator's.
    const UniqueFd channel = channel_made_by(65534);
    CHECK(in_child([&] { return answer_for(channel, "65534"); }) == "nobody");
    CHECK(has(in_child([&] { return answer_for(channel, "1"); }), "made by uid 65534"));
}

TEST_CASE("standard input of any other kind is refused" * doctest::skip(not_root()))
{
    const std::string not_a_socket = "77 denied: standard input is not a socket of pi";
    const std::string another_socket = "77 denied: standard input is a socket, but not one of pi";
    const TemporaryDirectory directory;
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK(has(answer_for(open_path(directory.write("file", "x")), "65534"), not_a_socket));
    CHECK(has(answer_for(open_path(directory / "fifo", O_RDWR), "65534"), not_a_socket));
    CHECK(has(answer_for(open_path(directory.path(), O_DIRECTORY), "65534"), not_a_socket));
    CHECK(has(answer_for(open_path(directory.path(), O_PATH), "65534"), not_a_socket));
    CHECK(has(answer_for(open_path("/dev/null"), "65534"), not_a_socket));
    CHECK(has(answer_for(FdRef(-1), "65534"), not_a_socket));
    CHECK(has(answer_for(pair_of(AF_UNIX, SOCK_STREAM), "65534"), another_socket));
    CHECK(has(answer_for(pair_of(AF_UNIX, SOCK_DGRAM), "65534"), another_socket));
    const UniqueFd internet = UniqueFd::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(internet.is_open());
    CHECK(has(answer_for(internet, "65534"), another_socket));
}

TEST_CASE("a socket that was never connected has no creator who could be a caller" * doctest::skip(not_root()))
{
    const UniqueFd lonely = UniqueFd::adopt(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(lonely.is_open());
    CHECK(has(answer_for(lonely, "65534"), "77 denied: the socket on standard input was made by uid 4294967295"));
    CHECK(has(answer_for(lonely, "4294967295"), "77 denied: SUDO_UID is not a user id"));
    CHECK(has(answer_for(lonely, "0"), "77 denied: root cannot run the agent"));
}

} // namespace authenticate_test
