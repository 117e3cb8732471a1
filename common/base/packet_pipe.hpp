// Packets in one direction over a pipe (pipe2(2), O_DIRECT), with which no descriptor can be. For root, where it listens to a process that
// an attacker may have taken over: a descriptor that comes with a packet of a socket is closed in the name of the process that has the
// other end, read or not, and the last close of a socket with SO_LINGER takes as long as its owner said.
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

constexpr std::size_t pipe_packet_limit = 4096; // bytes: what a pipe keeps together

// Neither end waits.
Pipe make_packet_pipe();

// Throws SystemFailure at once where there is no room, or no reader.
void write_packet(FdRef pipe, std::string_view bytes);

// The next packet, or nothing where every writer has closed. Throws ProtocolError for one that is too long, DeadlineExceeded if none came
// in time. A hostile writer can make one out of several, or several out of one.
std::optional<std::string> read_packet(FdRef pipe, Deadline deadline);

} // namespace pi_agent
