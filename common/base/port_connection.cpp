// Carries the bytes of one connection to a port of a session, on either side of the sandbox.
#include "common/base/port_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

namespace pi_agent {

int copy_all(FdRef from, FdRef to) noexcept
{
    std::array<char, 16UL * 1024> bytes;
    for (;;) {
        const ssize_t length = read(from.get(), bytes.data(), bytes.size());
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return length == 0 ? 0 : errno;
        for (ssize_t written = 0; written < length;) {
            const ssize_t more = write(to.get(), bytes.data() + written, static_cast<std::size_t>(length - written));
            if (more < 0 && errno != EINTR) return errno;
            written += std::max<ssize_t>(more, 0);
        }
    }
}

void carry_connection(PortConnection connection) noexcept
{
    try {
        const auto shared = std::make_shared<PortConnection>(std::move(connection));
        run_beside([shared] {
            copy_all(shared->socket, shared->out);
            shutdown(shared->socket.get(), SHUT_RD);
            shared->out.reset();
        });
        run_beside([shared] {
            copy_all(shared->in, shared->socket);
            shutdown(shared->socket.get(), SHUT_WR);
            shared->in.reset();
        });
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): said in the header; the other direction then finds its ends closed
    }
}

void run_beside(std::function<void()> work)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread(std::move(work)).detach();
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace pi_agent
