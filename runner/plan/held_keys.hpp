// How pi reaches the providers whose keys the session's gate holds: what its models.json and its environment say of them.
#pragma once

#include "common/policy/provider_table.hpp"
#include "common/policy/rules.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// `placeholders`: what stands for each key, in the order of the rules; without them, what stands for most.
//
// pi 0.73 to 0.87 keeps its own models of a provider that models.json only gives another address, and asks none without a key. The host in
// the path is for pi itself, which looks at addresses to know what a provider understands.
nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port);

// What pi needs to be told by variables.
std::map<std::string, std::string> environment_of_held_keys(const std::vector<ProviderRule> &rules);

// Variables with a key of theirs, or that would lead pi past the gate: the session gets them from no layer. pi 0.73 would take such a key
// before the one of models.json.
std::set<std::string> variables_of_held_keys(const std::vector<ProviderRule> &rules);

} // namespace pi_agent
