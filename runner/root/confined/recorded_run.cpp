// Two ways to end, one entry.
#include "runner/root/confined/recorded_run.hpp"

#include "common/base/error.hpp"

namespace pi_agent {

AgentEnded run_recorded(SessionRecord &record, AskedEnd &asked, Sandbox &sandbox, const AskedEnd::Tell &tell,
                        const std::function<AgentEnded()> &run)
{
    AgentEnded ended{};
    try {
        ended = run();
    } catch (const Failure &failure) {
        asked.explain();
        try {
            record.failed(failure.status(), failure.what());
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): main tries again, and tells the user
        }
        throw;
    }
    asked.explain();
    try {
        if (!record.knows_usage()) record.take_usage(sandbox.usage());
        record.ended(ended);
    } catch (const Failure &failure) { // the agent has ended whatever comes of this
        tell(std::string("the end of this session is not recorded: ") + failure.what());
    }
    return ended;
}

} // namespace pi_agent
