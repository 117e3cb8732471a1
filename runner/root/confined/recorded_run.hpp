// The agent's run, and how it ended in the record, whichever way that was.
#pragma once

#include "runner/root/confined/asked_end.hpp"
#include "runner/root/method/sandbox.hpp"
#include "runner/root/session/session_record.hpp"

#include <functional>

namespace pi_agent {

// What `run` returns, or throws. By then its end is recorded: before what the session left is removed, because who removes it must find no
// end that is still to be recorded. Where nothing takes that entry, `tell` says so.
AgentEnded run_recorded(SessionRecord &record, AskedEnd &asked, Sandbox &sandbox, const AskedEnd::Tell &tell,
                        const std::function<AgentEnded()> &run);

} // namespace pi_agent
