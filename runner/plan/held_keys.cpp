// How pi reaches the providers whose keys the session's gate holds.
#include "runner/plan/held_keys.hpp"

#include "common/seams/seams.hpp"
#include "runner/plan/gate_plan.hpp"

namespace pi_agent {

namespace {

// The rules are those of a policy that was read, so each has its provider in the table and a host that it may have.
template <typename Each>
void for_each_provider(const std::vector<ProviderRule> &rules, const Each &each)
{
    for (std::size_t index = 0; index < rules.size(); ++index)
        if (const Provider *provider = find_provider(rules[index].name)) each(index, *provider);
}

} // namespace

nlohmann::json models_of_held_keys(const std::vector<ProviderRule> &rules, const std::vector<std::string> &placeholders,
                                   std::uint16_t route_port)
{
    nlohmann::json models = nlohmann::json::object();
    for_each_provider(rules, [&](std::size_t index, const Provider &provider) {
        const std::string host = host_of_provider(provider, rules[index].host).host;
        models["providers"][rules[index].name] = {
            {"baseUrl", "http://127.0.0.1:" + std::to_string(route_port) + "/" + host + std::string(provider.base_path)},
            {"apiKey", index < placeholders.size() ? placeholders[index] : std::string(key_placeholder)},
        };
    });
    return models;
}

void hold_outside(EnvironmentInput &environment, const Policy &policy)
{
    for_each_provider(policy.providers, [&](std::size_t, const Provider &provider) {
        environment.held_outside.insert(provider.variables.begin(), provider.variables.end());
        for (const auto &[name, value] : provider.set)
            environment.gate[std::string(name)] = value;
    });
    if (!has_own_network(policy.network.mode) || !defence_is_on("proxies-outside")) return;
    for (const auto &variable : gate_environment())
        environment.held_outside.insert(variable.first);
}

} // namespace pi_agent
