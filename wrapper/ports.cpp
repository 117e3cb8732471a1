// Listens on the user's loopback for ports of a session, and lets in nobody but the user.
#include "wrapper/session_client.hpp"

#include "common/base/port_connection.hpp"
#include "common/seams/seams.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

namespace pi_agent {

namespace {

constexpr int most_connections = 128; // at once: each has four threads, two of them in the session
constexpr int waiting_connections = 64;

// An address of either family.
union Address {
    sockaddr_storage all;
    sockaddr any;
    sockaddr_in four;
    sockaddr_in6 six;
};

Address loopback(int family, std::uint16_t port)
{
    Address address{};
    address.any.sa_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
        address.four.sin_port = htons(port);
        address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        address.six.sin6_port = htons(port);
        address.six.sin6_addr = in6addr_loopback;
    }
    return address;
}

[[noreturn]] void refuse_port(std::uint16_t port, int problem)
{
    const std::string name = "--pi-agent-port: port " + std::to_string(port) + " of this host ";
    const std::string other =
        "; name another one for it, as in --pi-agent-port=" + std::to_string(port % 30000 + 30000) + ":" + std::to_string(port);
    if (problem == EADDRINUSE) throw Failure(FailureKind::start_asks, name + "is taken by another program" + other);
    if (problem == EACCES) throw Failure(FailureKind::start_asks, name + "is for root's programs" + other);
    throw SystemFailure(problem, name + "cannot be listened on");
}

// Empty where this host has no such loopback. Where a browser looks for "localhost", both have to be ours, or another program could answer.
UniqueFd listen_on(int family, std::uint16_t port)
{
    UniqueFd listener = UniqueFd::adopt(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (!listener && family == AF_INET6 && errno == EAFNOSUPPORT) return {};
    if (!listener) throw_errno("making a socket for a port");
    // Connections of an earlier session may still be in TIME_WAIT. A port that somebody listens on stays theirs.
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    const Address address = loopback(family, port);
    const socklen_t size = family == AF_INET ? sizeof address.four : sizeof address.six;
    if (bind(listener.get(), &address.any, size) == 0 && listen(listener.get(), waiting_connections) == 0) return listener;
    if (family == AF_INET6 && errno == EADDRNOTAVAIL) return {};
    refuse_port(port, errno);
}

// --- Whose the other end of a connection is: the kernel tells anybody the owner of a socket of this network (sock_diag(7)).

struct DiagRequest {
    nlmsghdr head;
    inet_diag_req_v2 question;
};

DiagRequest question_about(const Address &peer, const Address &own)
{
    DiagRequest request{};
    request.head.nlmsg_len = sizeof request;
    request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    request.head.nlmsg_flags = NLM_F_REQUEST;
    inet_diag_req_v2 &question = request.question;
    question.sdiag_family = static_cast<std::uint8_t>(peer.any.sa_family);
    question.sdiag_protocol = IPPROTO_TCP;
    question.idiag_states = ~0U;
    inet_diag_sockid &id = question.id; // as the other end sees it
    id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (peer.any.sa_family == AF_INET) {
        id.idiag_sport = peer.four.sin_port;
        id.idiag_dport = own.four.sin_port;
        id.idiag_src[0] = peer.four.sin_addr.s_addr;
        id.idiag_dst[0] = own.four.sin_addr.s_addr;
    } else {
        id.idiag_sport = peer.six.sin6_port;
        id.idiag_dport = own.six.sin6_port;
        std::memcpy(id.idiag_src, &peer.six.sin6_addr, sizeof id.idiag_src);
        std::memcpy(id.idiag_dst, &own.six.sin6_addr, sizeof id.idiag_dst);
    }
    return request;
}

// The owner of the socket that a process has open there. A socket that its process has closed counts as root's, or as nobody's, and may
// still have bytes on their way here: it counts for nobody.
std::optional<uid_t> owner_of(const Address &peer, const Address &own)
{
    const UniqueFd netlink = UniqueFd::adopt(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    const DiagRequest request = question_about(peer, own);
    if (!netlink || send(netlink.get(), &request, sizeof request, 0) != sizeof request) return std::nullopt;
    struct {
        nlmsghdr head;
        inet_diag_msg socket;
        std::array<char, 4096> rest;
    } answer{};
    const ssize_t length = recv(netlink.get(), &answer, sizeof answer, 0); // the kernel has answered within send(2)
    const bool is_whole = length >= static_cast<ssize_t>(sizeof answer.head + sizeof answer.socket);
    if (!is_whole || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.socket.idiag_inode == 0) return std::nullopt;
    // Where no socket is connected so, the kernel answers with one that listens at that number.
    if (answer.socket.id.idiag_dport != request.question.id.idiag_dport) return std::nullopt;
    // The other end was closed without a word, and somebody else knocks with its numbers: what came before is not theirs.
    if (answer.socket.idiag_state == TCP_SYN_SENT) return std::nullopt;
    return answer.socket.idiag_uid;
}

} // namespace

AskedPort parse_asked_port(const std::string &text)
{
    const std::size_t colon = text.find(':');
    const auto inside = to_number<std::uint16_t>(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1));
    const auto here = colon == std::string::npos ? inside : to_number<std::uint16_t>(std::string_view(text).substr(0, colon));
    if (!inside || !here || *inside == 0 || *here == 0)
        throw Failure(FailureKind::command_line, "--pi-agent-port: " + escape_for_display(text) +
                                                     " is not a port; say one of the session, as in --pi-agent-port=3000, or "
                                                     "--pi-agent-port=8080:3000 for the port 8080 of this host");
    return {*here, *inside};
}

bool belongs_to_user(FdRef connection)
{
    Address peer{};
    Address own{};
    socklen_t peer_size = sizeof peer;
    socklen_t own_size = sizeof own;
    if (getpeername(connection.get(), &peer.any, &peer_size) != 0 || getsockname(connection.get(), &own.any, &own_size) != 0) return false;
    const auto owner = owner_of(peer, own);
    // Still connected, and so to the same end all the time: no later socket with that number was asked about.
    const bool is_users = owner && *owner == getuid() && getpeername(connection.get(), &peer.any, &peer_size) == 0;
    return is_users || !defence_is_on("port-owner");
}

// What the thread has.
struct SessionPorts::Serving {
    std::vector<Listener> listeners;
    UniqueFd channel;
    std::shared_ptr<std::atomic<int>> connections = std::make_shared<std::atomic<int>>(0);

    // Until the session's first process has ended.
    void run()
    {
        auto waits = mapped(listeners, [&](const auto &listener) { return pollfd{listener.fd.get(), POLLIN, 0}; });
        waits.push_back({channel.get(), 0, 0});
        while (poll(waits.data(), waits.size(), -1) >= 0 || errno == EINTR) {
            if (waits.back().revents != 0) return;
            for (std::size_t index = 0; index < listeners.size(); ++index)
                if (waits[index].revents != 0) accept_from(listeners[index]);
        }
    }

    void accept_from(const Listener &listener)
    {
        UniqueFd connection = UniqueFd::adopt(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!connection && errno != EAGAIN) poll(nullptr, 0, 100); // no descriptor is free, say: it would be asked again at once
        if (!connection || *connections >= most_connections || !belongs_to_user(connection)) return;
        ++*connections;
        const std::shared_ptr<void> counted(nullptr, [all = connections](void *) { --*all; });
        try {
            Pipe in = make_pipe();
            Pipe out = make_pipe();
            send_packet(channel, Encoder().number(listener.inside).bytes(), {out.reading.get(), in.writing.get()}, in_seconds(1));
            carry_connection({std::move(connection), std::move(in.reading), std::move(out.writing), counted});
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): this connection is closed; the next one may find what it needs
        }
    }
};

SessionPorts::SessionPorts(std::vector<AskedPort> ports)
{
    if (ports.empty()) return;
    for (const AskedPort &port : ports)
        for (const int family : {AF_INET, AF_INET6})
            if (UniqueFd fd = listen_on(family, port.here)) listeners_.push_back({std::move(fd), port.inside});
    std::tie(ours_, theirs_) = make_channel();
    // Nothing is read here, so nothing that the session could send may wait here either.
    if (shutdown(ours_.get(), SHUT_RD) != 0) throw_errno("closing one way of the channel of ports");
}

void SessionPorts::serve()
{
    if (listeners_.empty()) return;
    const auto serving = std::make_shared<Serving>();
    serving->listeners = std::exchange(listeners_, {});
    serving->channel = std::move(ours_);
    run_beside([serving] { serving->run(); });
}

} // namespace pi_agent
