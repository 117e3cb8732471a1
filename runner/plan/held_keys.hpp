// How pi reaches the providers whose keys the session's gate holds: what its models.json and its environment say of them.
#pragma once

#include "common/policy/provider_table.hpp"
#include "runner/plan/environment.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pi_agent {

// `placeholders`: what stands for each key, in the order of the rules; without them, what stands for most.
//
// pi 0.73 to 0.87 keeps its own models of a provider that models.json only gives another address, and asks none without a key. The host in
// the path is for pi itself, which looks at addresses to know what a provider understands.
nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port);

// Says which variables a session gets from no layer, and what it gets instead; the gate's own come later. By the policy as it holds in the
// root, whatever the start gives up: a session whose network leads to no gate has neither the keys nor a route.
//
// Variables with a key of a provider would give it away, and others would lead pi past the gate. pi 0.73 would take such a key before the
// one of models.json. A proxy (which may have a password in its address) leads nowhere from a network of the session's own.
void hold_outside(EnvironmentInput &environment, const Policy &policy);

} // namespace pi_agent
