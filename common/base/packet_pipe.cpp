// Packets over a pipe.
#include "common/base/packet_pipe.hpp"

#include <array>
#include <cerrno>
#include <climits>

namespace pi_agent {

static_assert(pipe_packet_limit <= PIPE_BUF);

namespace {

constexpr int packets_of_room = 64; // each takes a page

} // namespace

Pipe make_packet_pipe()
{
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_DIRECT | O_NONBLOCK) != 0) throw_errno("making a pipe for packets");
    Pipe made{UniqueFd::adopt(ends[0]), UniqueFd::adopt(ends[1])};
    // best_effort: with less room a writer waits more often.
    static_cast<void>(fcntl(made.writing.get(), F_SETPIPE_SZ, packets_of_room * static_cast<int>(sysconf(_SC_PAGESIZE))));
    return made;
}

void write_packet(FdRef pipe, std::string_view bytes)
{
    if (bytes.empty() || bytes.size() > pipe_packet_limit) throw Failure(ExitStatus::internal, "a packet of this size is never written");
    ssize_t count = 0;
    do
        count = write(pipe.get(), bytes.data(), bytes.size());
    while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(bytes.size())) throw_errno("writing to the peer");
}

std::optional<std::string> read_packet(FdRef pipe, Deadline deadline)
{
    std::string packet(pipe_packet_limit + 1, '\0');
    for (;;) {
        const ssize_t count = read(pipe.get(), packet.data(), packet.size());
        if (count == 0) return std::nullopt;
        if (count > static_cast<ssize_t>(pipe_packet_limit)) throw ProtocolError("a packet that is too long was refused");
        if (count > 0) {
            packet.resize(static_cast<std::size_t>(count));
            return packet;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN) throw_errno("reading from the peer");
        if (!wait_for_input(pipe, deadline)) throw DeadlineExceeded("the peer did not answer in time");
    }
}

} // namespace pi_agent
