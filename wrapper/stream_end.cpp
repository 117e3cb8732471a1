// Reading and writing what others may have open, too, without waiting.
#include "wrapper/stream_end.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

bool comes_later() noexcept
{
    return errno == EAGAIN || errno == EINTR;
}

bool is_ready(FdRef fd, short events) noexcept
{
    pollfd entry{fd.get(), events, 0};
    return poll(&entry, 1, 0) > 0;
}

} // namespace

// A pipe is opened a second time: O_NONBLOCK would be everybody's who has it. What cannot be is asked by poll(2) before each call.
DescriptorEnd::DescriptorEnd(UniqueFd fd, For purpose) : fd_(std::move(fd))
{
    const struct stat facts = examine(fd_, "examining a stream");
    is_socket_ = purpose == For::packets || S_ISSOCK(facts.st_mode);
    if (is_socket_) return;
    may_block_ = true;
    if (!S_ISFIFO(facts.st_mode)) return;
    const int flags = purpose == For::reading ? O_RDONLY : O_WRONLY;
    UniqueFd own = UniqueFd::adopt(open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!own) return;
    fd_ = std::move(own);
    may_block_ = false;
}

StreamEnd::State DescriptorEnd::read(std::string &piece)
{
    if (may_block_ && !is_ready(fd_, POLLIN)) return State::blocked;
    piece.resize(piece_limit);
    const ssize_t count =
        is_socket_ ? recv(fd_.get(), piece.data(), piece.size(), MSG_DONTWAIT) : ::read(fd_.get(), piece.data(), piece.size());
    if (count < 0 && comes_later()) return State::blocked;
    if (count <= 0) return State::ended;
    piece.resize(static_cast<std::size_t>(count));
    return State::moved;
}

StreamEnd::State DescriptorEnd::write(std::string &piece)
{
    if (may_block_ && !is_ready(fd_, POLLOUT)) return State::blocked;
    const std::size_t size = may_block_ ? std::min<std::size_t>(piece.size(), PIPE_BUF) : piece.size();
    const ssize_t count =
        is_socket_ ? ::send(fd_.get(), piece.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_.get(), piece.data(), size);
    if (count < 0 && comes_later()) return State::blocked;
    if (count < 0) return State::ended;
    piece.erase(0, static_cast<std::size_t>(count));
    return State::moved;
}

} // namespace pi_agent
