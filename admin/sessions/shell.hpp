// pi-agentctl shell: a shell in the same sandbox as the agent, for whoever asks what the agent sees.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

// Becomes the wrapper beside this program, which starts the shell as it starts the agent: the policy, the sudo rule and the sandbox are the
// same, and so is the exit status. `arguments` are bash's. Throws SystemFailure; Failure(usage) for root, who is no user of pi.
[[noreturn]] void become_shell(const std::vector<std::string> &arguments);

} // namespace pi_agent
