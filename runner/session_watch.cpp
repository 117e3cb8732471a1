// Watching while preparing.
#include "runner/session_watch.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"

namespace pi_agent {

std::array<pollfd, 3> SessionWatch::waits() const noexcept
{
    return {pollfd{receiver.get(), POLLIN, 0}, pollfd{wrapper.get(), POLLRDHUP, 0}, pollfd{termination.get(), POLLIN, 0}};
}

void SessionWatch::obey(const pollfd *polled) const
{
    if (polled[0].revents != 0) hear_receiver(); // first: it tells why
    if ((polled[1].revents != 0 || polled[2].revents != 0) && defence_is_on("sync-ends-with-session"))
        throw Failure(ExitStatus::system_failure, "the session was ended while it was being prepared");
}

void SessionWatch::check() const
{
    std::array<pollfd, 3> polled = waits();
    if (poll(polled.data(), polled.size(), 0) > 0) obey(polled.data());
}

} // namespace pi_agent
