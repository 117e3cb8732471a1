// How pi reaches the providers whose keys the session's gate holds.
#include "runner/plan/held_keys.hpp"

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

std::map<std::string, std::string> environment_of_held_keys(const std::vector<ProviderRule> &rules)
{
    std::map<std::string, std::string> variables;
    for_each_provider(rules, [&](std::size_t, const Provider &provider) {
        for (const auto &[name, value] : provider.set)
            variables[std::string(name)] = value;
    });
    return variables;
}

std::set<std::string> variables_of_held_keys(const std::vector<ProviderRule> &rules)
{
    std::set<std::string> names;
    for_each_provider(rules,
                      [&](std::size_t, const Provider &provider) { names.insert(provider.variables.begin(), provider.variables.end()); });
    return names;
}

} // namespace pi_agent
