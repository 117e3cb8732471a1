// Writing to standard error without waiting for its reader. Its flags are others' too, so poll(2) is asked before each write.
#include "wrapper/standard_error.hpp"

#include "common/base/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr std::size_t piece_for_terminal = 256; // what a terminal always takes once poll(2) says that it takes something
constexpr int reader_patience_seconds = 1;

bool is_taken = true; // the last text

} // namespace

void say(std::string_view text) noexcept
{
    const std::size_t at_once = isatty(STDERR_FILENO) == 1 ? piece_for_terminal : PIPE_BUF;
    const Deadline deadline = in_seconds(is_taken ? reader_patience_seconds : 0);
    is_taken = true;
    while (!text.empty()) {
        pollfd wait{STDERR_FILENO, POLLOUT, 0};
        const int ready = poll(&wait, 1, milliseconds_left(deadline));
        is_taken = ready != 0;
        if (ready == 0) return;
        if (ready < 0 && errno != EINTR) return;
        const ssize_t count = ready < 0 ? 0 : write(STDERR_FILENO, text.data(), std::min(text.size(), at_once));
        if (count < 0 && errno != EINTR && errno != EAGAIN) return;
        text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
}

} // namespace pi_agent
