// What follows from a policy without asking the host.
#include "common/policy.hpp"

namespace pi_agent {

std::string entry_key(const UserEntry &entry)
{
    return std::string(entry.is_group ? "users.%" : "users.") + entry.name;
}

std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as)
{
    if (run_as) return *run_as;
    return policy.agent.accounts == Accounts::per_user ? policy.agent.user + "-" + user : policy.agent.user;
}

} // namespace pi_agent
