// Sending to the wrapper, with one patience for all of it.
#include "runner/root/session/to_wrapper.hpp"

#include "common/base/channel.hpp"
#include "common/base/error.hpp"
#include "common/seams/defence.hpp"

namespace pi_agent {

namespace {

constexpr int wrapper_patience_seconds = 2;

bool send(FdRef wrapper, const RunnerMessage &message, Deadline deadline) noexcept
{
    try {
        send_packet(wrapper, encode(message), {}, deadline);
        return true;
    } catch (const std::exception &) { // best_effort: said in the header
        return false;
    }
}

} // namespace

void ToWrapper::tell(const RunnerMessage &message) noexcept
{
    const bool bounded = defence_is_on("wrapper-deadline");
    const int patience = !bounded ? 600 : reads_ ? wrapper_patience_seconds : 0;
    reads_ = send(wrapper_, message, in_seconds(patience));
}

void ToWrapper::tell_all(const std::vector<std::string> &notices) noexcept
{
    for (const auto &text : notices)
        tell(Notice{text});
}

bool ToWrapper::tell_at_once(const RunnerMessage &message) noexcept
{
    return send(wrapper_, message, Clock::now());
}

} // namespace pi_agent
