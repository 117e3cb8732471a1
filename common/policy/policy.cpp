// What follows from a policy without asking the host.
#include "common/policy/policy.hpp"

#include "common/host/account.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

std::string entry_key(const UserEntry &entry)
{
    return std::string(entry.is_group ? "users.%" : "users.") + entry.name;
}

std::string root_key(const UserEntry &entry, const RootSpec &root)
{
    return entry_key(entry) + ".roots[" + std::to_string(root.index) + "]";
}

const char *to_string(SandboxMethod method)
{
    constexpr std::array<const char *, 5> names = {"systemd", "bwrap", "podman", "docker", "none"};
    return names.at(static_cast<std::size_t>(method));
}

const std::vector<ProviderRule> &routed_providers(const Policy &policy) noexcept
{
    static const std::vector<ProviderRule> none;
    return policy.network.mode == NetworkMode::hosts && policy.network.reaches_providers ? policy.providers : none;
}

bool has_unit(SandboxMethod method) noexcept
{
    return method != SandboxMethod::bwrap;
}

std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as)
{
    if (run_as) return *run_as;
    return policy.agent.accounts == Accounts::per_user ? policy.agent.user + "-" + user : policy.agent.user;
}

std::string agents_home(const std::string &state_dir, const std::string &user)
{
    return state_dir + "/users/" + user + "/home";
}

bool can_be_created(const std::string &account) noexcept
{
    return is_plain_name(account) && account.size() <= creatable_length && account.find('.') == std::string::npos;
}

bool has_agents_name(const Policy &policy, const std::string &name)
{
    if (name == policy.agent.user) return true;
    return policy.agent.accounts == Accounts::per_user && name.starts_with(policy.agent.user + "-") && !policy.people.contains(name);
}

bool is_agent_account(const Policy &policy, const std::string &name)
{
    const auto runs_as_name = [&name](const UserEntry &entry) { return entry.run_as == name; };
    return has_agents_name(policy, name) || std::any_of(policy.users.begin(), policy.users.end(), runs_as_name);
}

} // namespace pi_agent
