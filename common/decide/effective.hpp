// What holds for one session: the whole policy, then the caller's groups, the caller, the root, and last what the start itself asks. Pure
// functions: wrapper, runner and pi-agentctl all get the same answer, and only the runner's counts.
#pragma once

#include "common/base/request.hpp"
#include "common/decide/decision.hpp"

namespace pi_agent {

// As it holds for one caller, wherever they work. Throws PolicyError if their levels contradict each other.
Policy policy_for(Policy policy, const AccessRules &access);

// As it holds for that caller in one of their roots, the one that holds the working directory. Throws PolicyError if its network would give
// away the keys of providers.
Policy policy_in(Policy callers, const RootSpec &root);

// As it holds for one start that adds these hosts, of those that the policy lets its user add. Throws Failure(start_asks) for any other.
Policy granted(Policy policy, const std::vector<std::string> &hosts);

// As it holds for one start that gives something up. It takes from what a session reaches and shows, and from nothing that the policy keeps
// out of it: what is masked or protected, and whose keys stay outside, is the same as without. Throws Failure(start_asks) if the policy
// gives less than the start would keep, and Failure(network_not_enforced) if the method cannot keep it from the rest.
Policy narrowed(Policy policy, const Narrowing &start);

} // namespace pi_agent
