// Whose the other end of a connection is, and bytes that go both ways over it: wrapper/session_client.hpp, common/base/port_connection.hpp
#include "common/base/port_connection.hpp"
#include "support/failure.hpp"
#include "wrapper/session_client.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>

namespace ports_test {

using namespace pi_agent;       // NOLINT(google-build-using-namespace)
using namespace pi_agent::test; // NOLINT(google-build-using-namespace)

// Not a pair: clang 14 lets no lambda, as those of doctest, have a part of one.
struct Ends {
    UniqueFd client;
    UniqueFd server;
};

struct Loopback {
    UniqueFd listener = UniqueFd::adopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};

    Loopback()
    {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(bind(listener.get(), as_any(), sizeof address) == 0);
        REQUIRE(listen(listener.get(), 4) == 0);
        socklen_t length = sizeof address;
        REQUIRE(getsockname(listener.get(), as_any(), &length) == 0);
    }

    sockaddr *as_any() { return reinterpret_cast<sockaddr *>(&address); } // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)

    Ends connected()
    {
        UniqueFd client = UniqueFd::adopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(connect(client.get(), as_any(), sizeof address) == 0);
        return {std::move(client), UniqueFd::adopt(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
    }
};

std::string read_all(FdRef from)
{
    std::string text;
    std::array<char, 4096> bytes;
    for (ssize_t length = read(from.get(), bytes.data(), bytes.size()); length > 0; length = read(from.get(), bytes.data(), bytes.size()))
        text.append(bytes.data(), static_cast<std::size_t>(length));
    return text;
}

TEST_CASE("a connection belongs to whoever holds its other end, and to nobody once that is closed")
{
    Loopback loopback;
    Ends ends = loopback.connected();
    CHECK(belongs_to_user(ends.server));
    REQUIRE(shutdown(ends.client.get(), SHUT_WR) == 0);
    CHECK(belongs_to_user(ends.server)); // it still waits for the answer
    ends.client.reset();
    CHECK_FALSE(belongs_to_user(ends.server));

    Ends broken_off = loopback.connected();
    const linger at_once{1, 0};
    setsockopt(broken_off.client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    broken_off.client.reset();
    CHECK_FALSE(belongs_to_user(broken_off.server));
    CHECK_FALSE(belongs_to_user(loopback.listener));
}

TEST_CASE("who knocks with the numbers of an end that is gone does not own what that end has sent")
{
    Loopback loopback;
    Ends ends = loopback.connected();
    sockaddr_in numbers{};
    socklen_t length = sizeof numbers;
    auto *as_any = reinterpret_cast<sockaddr *>(&numbers); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    REQUIRE(getsockname(ends.client.get(), as_any, &length) == 0);
    // The server hears nothing more: neither that the end is gone, nor the knocking.
    std::array<sock_filter, 1> deaf{{{BPF_RET | BPF_K, 0, 0, 0}}};
    const sock_fprog filter{deaf.size(), deaf.data()};
    REQUIRE(setsockopt(ends.server.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0);
    const linger at_once{1, 0};
    REQUIRE(setsockopt(ends.client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    ends.client.reset();
    const UniqueFd next = UniqueFd::adopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    REQUIRE(setsockopt(next.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    REQUIRE(bind(next.get(), as_any, length) == 0);
    REQUIRE(connect(next.get(), loopback.as_any(), sizeof loopback.address) == -1);
    REQUIRE(errno == EINPROGRESS);
    REQUIRE(getpeername(ends.server.get(), as_any, &length) == 0);
    CHECK_FALSE(belongs_to_user(ends.server));
}

TEST_CASE("bytes go both ways, and each end is passed on for itself")
{
    Loopback loopback;
    Ends ends = loopback.connected();
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    auto counted = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = counted;
    carry_connection({std::move(ends.server), std::move(in.reading), std::move(out.writing), std::move(counted)});
    const std::string question(300'000, 'q');
    UniqueFd sender = std::move(ends.client);
    run_beside([&question, fd = sender.get()] {
        send(fd, question.data(), question.size(), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
    });
    CHECK(read_all(out.reading) == question); // to the end
    REQUIRE(write(in.writing.get(), "answer", 6) == 6);
    CHECK_FALSE(watched.expired());
    in.writing.reset();
    CHECK(read_all(sender) == "answer");
    for (int round = 0; round < 200 && !watched.expired(); ++round)
        poll(nullptr, 0, 10);
    CHECK(watched.expired());
}

TEST_CASE("a port that another program has is refused, by name")
{
    Loopback loopback;
    const std::uint16_t port = ntohs(loopback.address.sin_port);
    const Caught caught = failure_of([&] { SessionPorts({{port, 3000}}); });
    CHECK(caught.status == 77);
    CHECK(has(caught.text, std::to_string(port) + " of this host is taken"));
}

} // namespace ports_test
