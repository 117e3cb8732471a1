// Owners of homes against accounts of agents.
#include "admin/diagnose/home_check.hpp"

#include "admin/host/accounts.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/host/account.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>

namespace pi_agent {

namespace {

struct AgentOfUser {
    std::string account, key;
    Position where;
};

// An entry of the user's own counts before those of groups. Where groups contradict each other it is the first: the user is told at a
// start.
std::map<std::string, AgentOfUser> agents_of_users(const Policy &policy)
{
    std::map<std::string, AgentOfUser> agents;
    const auto add = [&](const std::string &user, const UserEntry &entry) {
        agents.emplace(user, AgentOfUser{agent_account_name(policy, user, entry.run_as), entry_key(entry), entry.where});
    };
    for (const auto &entry : policy.users)
        if (!entry.is_group) add(entry.name, entry);
    for (const auto &entry : policy.users)
        if (entry.is_group)
            for (const auto &member : group_members(entry.name))
                if (is_plain_name(member) && !is_agent_account(policy, member)) add(member, entry);
    return agents;
}

void check_owner(const std::string &path, const std::string &user, const AgentOfUser &agent, const struct stat &facts, Problems &problems)
{
    if (facts.st_uid == 0) return; // only begun: the next start goes on with it
    const auto account = find_account(agent.account);
    if (account && account->uid == Uid(facts.st_uid) && account->gid == Gid(facts.st_gid)) return;
    problems.add(
        agent.where, agent.key,
        fmt::format("{} belongs to {}, but by the policy the agent of {} runs as {}{}, which could not use it", path,
                    escape_for_display(name_or_number(Uid(facts.st_uid))), user, agent.account,
                    account ? "" : " (an account that does not exist yet)"),
        fmt::format("keep the account (run_as, agent.accounts), or begin with an empty home: sudo pi-agentctl state reset --user {0} "
                    "(before that, sudo pi-agentctl state export --user {0} DIRECTORY copies the agent's sessions)",
                    user));
}

} // namespace

void check_homes(const Policy &policy, Problems &problems, Unverified &unverified)
{
    for (const auto &[user, agent] : agents_of_users(policy)) {
        const std::string path = policy.agent.state_dir + "/users/" + user + "/home"; // all but the last is root's
        struct stat facts {};
        if (::lstat(path.c_str(), &facts) == 0) {
            check_owner(path, user, agent, facts, problems);
        } else if (errno == EACCES) {
            unverified.push_back("whose the agents' homes are: only root can look into " + policy.agent.state_dir);
            return;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            problems.add(agent.where, agent.key, SystemFailure(errno, "examining " + path).what(), "");
        }
    }
}

} // namespace pi_agent
