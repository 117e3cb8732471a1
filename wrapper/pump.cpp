// Moving bytes one way.
#include "wrapper/pump.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace pi_agent {

Pump::Outcome Pump::fill(FdRef source)
{
    const ssize_t count = read(source.get(), buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::blocked;
    if (count <= 0) return Outcome::source_ended; // also EIO: the last slave is closed, or the terminal is gone
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return Outcome::moved;
}

bool Pump::fill_further(FdRef source)
{
    if (end_ == buffer_.size()) return false;
    const ssize_t count = read(source.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (count > 0) end_ += static_cast<std::size_t>(count);
    return count > 0;
}

void Pump::drop_before(char first, char second) noexcept
{
    const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    auto to = from;
    while (from != end) {
        auto found = std::find(from, end, second);
        const bool is_pair = found != end && found != from && *(found - 1) == first;
        to = std::copy(from, is_pair ? found - 1 : found, to);
        from = found;
        if (from != end) *to++ = *from++;
    }
    end_ = static_cast<std::size_t>(to - buffer_.begin());
}

void Pump::replace(std::string_view bytes)
{
    if (buffer_.size() < bytes.size()) buffer_.resize(bytes.size());
    begin_ = 0;
    end_ = bytes.size();
    std::copy(bytes.begin(), bytes.end(), buffer_.begin());
}

Pump::Outcome Pump::drain(FdRef sink, std::size_t at_once)
{
    if (begin_ == end_) return Outcome::moved;
    const ssize_t count = write(sink.get(), buffer_.data() + begin_, std::min(end_ - begin_, at_once));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::blocked;
    if (count < 0) return Outcome::sink_ended;
    begin_ += static_cast<std::size_t>(count);
    return Outcome::moved;
}

} // namespace pi_agent
