// Leads connections of the user's own programs to ports of the session's loopback.
#include "runner/inside/agent_process.hpp"

#include "common/base/port_connection.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

namespace pi_agent {

namespace {

template <typename Address>
UniqueFd connect_to(const Address &address, int family)
{
    UniqueFd connection = UniqueFd::adopt(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (connection && connect(connection.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) connection.reset();
    return connection;
}

// A development server that listens on "localhost" has one of the two.
UniqueFd connect_here(std::uint16_t port)
{
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (UniqueFd connection = connect_to(four, AF_INET)) return connection;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port;
    six.sin6_addr = in6addr_loopback;
    return connect_to(six, AF_INET6);
}

// A socket could lead the session to another network, and a file of the user's could be changed. No file system is asked.
bool is_pipe(FdRef fd)
{
    struct statx facts {};
    return statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) == 0 && S_ISFIFO(facts.stx_mode);
}

// The next connection: its port, and the two pipes. False when the wrapper is gone, or sends something else than pipes.
bool serve_next(FdRef connections, const std::vector<std::uint64_t> &ports)
{
    std::optional<Packet> packet = receive_packet(connections, in_seconds(1));
    if (!packet) return false;
    if (!std::all_of(packet->fds.begin(), packet->fds.end(), is_pipe)) return false;
    const std::uint64_t port = Decoder(packet->bytes).number();
    const bool is_named = std::find(ports.begin(), ports.end(), port) != ports.end() || !defence_is_on("named-ports");
    if (packet->fds.size() != 2 || !is_named) return true;
    const auto pipes = std::make_shared<std::vector<UniqueFd>>(std::move(packet->fds));
    run_beside([port, pipes] { // a server that accepts nothing keeps only this one waiting
        if (UniqueFd connection = connect_here(static_cast<std::uint16_t>(port)))
            carry_connection({std::move(connection), std::move(pipes->front()), std::move(pipes->back())});
    });
    return true;
}

} // namespace

void serve_ports(UniqueFd connections, std::vector<std::uint64_t> ports)
{
    run_beside([channel = std::make_shared<UniqueFd>(std::move(connections)), ports = std::move(ports)] {
        try {
            pollfd wait{channel->get(), POLLIN, 0};
            do
                poll(&wait, 1, -1);
            while (serve_next(*channel, ports));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the ports close, and the agent goes on
        }
        channel->reset();
    });
}

} // namespace pi_agent
