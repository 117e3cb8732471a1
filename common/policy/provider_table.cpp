// The providers of models whose keys a gate can hold: the table of common/policy/providers.toml.
#include "common/policy/provider_table.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

namespace {

constexpr std::pair<std::string_view, std::string_view> key_variables[] = {
#include "common/key_variables.inc"
};

constexpr std::string_view setup_token = "sk-ant-oat"; // what pi looks for, too

bool is_resource_name(std::string_view text) noexcept
{
    constexpr std::string_view label_bytes = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
           text.find_first_not_of(label_bytes) == std::string_view::npos;
}

bool is_like(std::string_view host, std::string_view pattern) noexcept
{
    const std::size_t star = pattern.find('*');
    if (host.size() < pattern.size() || !host.starts_with(pattern.substr(0, star)) || !host.ends_with(pattern.substr(star + 1)))
        return false;
    return is_resource_name(host.substr(star, host.size() - pattern.size() + 1));
}

} // namespace

const std::vector<Provider> &providers_with_gate()
{
    static const std::vector<Provider> providers = {
#include "common/providers.inc"
    };
    return providers;
}

const Provider *find_provider(std::string_view name)
{
    const auto &all = providers_with_gate();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Provider &one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> providers_of_key(std::string_view variable)
{
    std::vector<std::string> providers;
    for (const auto &[name, provider] : key_variables)
        if (name == variable) providers.emplace_back(provider);
    return providers;
}

std::optional<std::string> key_variable_of_provider(std::string_view provider)
{
    for (const auto &[name, other] : key_variables)
        if (other == provider) return std::string(name);
    return std::nullopt;
}

ProviderHost host_of_provider(const Provider &provider, std::string_view of_policy)
{
    if (of_policy.empty() && provider.host.empty())
        return {"", "has a host for each customer, and none is named; name yours: " + std::string(provider.host_pattern)};
    if (of_policy.empty() || of_policy == provider.host) return {std::string(provider.host), std::nullopt};
    if (provider.host_pattern.empty())
        return {"", "is at " + std::string(provider.host) + ", and its key goes to no other host; leave the host out"};
    if (!is_like(of_policy, provider.host_pattern))
        return {"", "has hosts like " + std::string(provider.host_pattern) + ", and its key goes to no other"};
    return {std::string(of_policy), std::nullopt};
}

KeyForm form_of_key(const Provider &provider, std::string_view key)
{
    if (provider.name == "anthropic" && key.starts_with(setup_token))
        return {"authorization", "Bearer ", std::string(setup_token) + "-" + std::string(key_placeholder)};
    return {provider.header, provider.prefix, std::string(key_placeholder)};
}

} // namespace pi_agent
