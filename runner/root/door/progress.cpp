// Sending what the preparation is at, not too early and not too often.
#include "runner/root/door/progress.hpp"

#include "common/base/request.hpp"

namespace pi_agent {

void Progress::show(const std::string &doing)
{
    if (doing.empty() || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    try {
        send_packet(wrapper_, encode(RunnerMessage(Preparing{doing})), {}, Clock::now());
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): best_effort: who does not read does not want to know
    }
}

} // namespace pi_agent
