// Sending a request and messages without waiting.
#include "wrapper/to_peer.hpp"

#include "common/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

ToPeer::ToPeer(FdRef channel, const Request &request, FdRef cwd, const std::array<int, 3> &stdio)
    : channel_(channel), bytes_(encode_request(request)), request_(bytes_, descriptors_of(request, cwd, stdio))
{
}

void ToPeer::go_on()
{
    try {
        request_.send(channel_, Clock::now());
    } catch (const DeadlineExceeded &) { // the rest later
        return;
    } catch (const SystemFailure &) { // NOLINT(bugprone-empty-catch): the runner has refused already; its word is on the way
    }
    has_asked_ = true;
    for (const auto &message : std::exchange(untold_, {}))
        tell(message);
}

void ToPeer::tell(const WrapperMessage &message)
{
    if (!has_asked_) return untold_.push_back(message);
    try {
        send_packet(channel_, encode(message), {}, in_seconds(1));
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): said in the header
    }
}

void let_go_of_input_and_output()
{
    const UniqueFd null = UniqueFd::adopt(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0)
        throw_errno("letting go of standard input and output");
}

} // namespace pi_agent
