// Hosts whose own configuration brings the policy and the sudo rule (NixOS), as a build option.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/policy/policy_load.hpp"

#include <string>

namespace pi_agent {

// What doctor and messages say in the place of "pi-agentctl apply".
inline const char *bring_sudo_rule()
{
    return build::is_system_managed ? "rebuild the system, whose configuration brings the rule" : "sudo pi-agentctl apply";
}

// For commands that write the policy. Throws Failure(usage) where it is not theirs to write.
inline void require_own_policy(const char *command)
{
    if (build::is_system_managed)
        throw Failure(ExitStatus::usage, std::string(command) + ": " + policy_path +
                                             " is made by the configuration of this system; change it there, and rebuild the system");
}

} // namespace pi_agent
