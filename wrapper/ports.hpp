// Ports of a session's own network on the user's loopback (--pi-agent-port), for that user alone.
#pragma once

#include "common/base/channel.hpp"

namespace pi_agent {

struct AskedPort {
    std::uint16_t here = 0;   // on the host's loopback
    std::uint16_t inside = 0; // on the session's
};

// "3000", or "8080:3000" for another number here. Throws Failure(command_line).
AskedPort parse_asked_port(const std::string &text);

// What listens here. The wrapper alone does, with its user's rights: it accepts, asks the kernel whose the other end is, and hands two
// pipes to the session's first process, which connects there (runner/inside/ports.cpp). No side gets a socket of the other's network.
class SessionPorts {
public:
    // Takes the ports. Throws Failure where another program has one of them, so that nobody's program stands in for the session's.
    explicit SessionPorts(std::vector<AskedPort> ports);

    // The session's end of the channel, for the request; it is closed here once the request is sent.
    [[nodiscard]] FdRef for_session() const noexcept { return theirs_; }
    void let_go_of_session_end() noexcept { theirs_.reset(); }

    // Accepts from now on, on a thread of its own, until the session's first process has ended.
    void serve();

private:
    struct Listener {
        UniqueFd fd;
        std::uint16_t inside;
    };
    struct Serving;

    std::vector<Listener> listeners_;
    UniqueFd ours_;
    UniqueFd theirs_;
};

// Whether the program at the other end of this connection within the host belongs to this process's user.
bool belongs_to_user(FdRef connection);

} // namespace pi_agent
