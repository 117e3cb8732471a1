// How the agent ended: the sandbox's word (systemd's, bwrap's), and where that cannot say it, the launcher's.
#pragma once

#include "common/base/request.hpp"
#include "runner/plan/sandbox_plan.hpp"
#include "runner/wire/launch_record.hpp"

#include <optional>

namespace pi_agent {

// The first process of a PID namespace cannot die of a signal that it sends itself, so there pi-agent-exec exits with 128 + the signal of
// the agent and says which it was. It is a hostile peer's hint, believed only where it agrees with what was seen from outside, or where
// nothing was. `killed`: the runner had all of it killed. Throws Failure(system_failure) when nothing tells.
AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed = false);

// What is seen of an engine that outlived the launcher and was killed for it: its end by a signal is then no word about the agent's.
SandboxResult without_own_kill(SandboxResult seen);

} // namespace pi_agent
