// The one place that turns the policy's method into a sandbox.
#pragma once

#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"
#include "runner/root/method/sandbox.hpp"

#include <memory>
#include <string>

namespace pi_agent {

// For one session. Throws Failure(unavailable) when this host cannot offer the method; never another one in its place.
std::unique_ptr<Sandbox> make_sandbox(const AsRoot &root, const SandboxPolicy &policy, const std::string &session_id, Uid user);

// What the user is told at each start of a session that is not sandboxed.
std::string unconfined_notice(const SandboxPolicy &policy, const Account &agent);

// Once the launcher is there, before anything of the agent's is sent in: what the kernel says of it. Throws Failure(unavailable).
void require_enforced(Sandbox &sandbox, const Policy &policy);

} // namespace pi_agent
