// Who called, and whether the accounts that a session needs are fit for it.
#include "runner/root/door/authenticate.hpp"

#include "common/host/remedy.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sys/socket.h>

namespace pi_agent {

namespace {

template <typename Value>
Value socket_option(FdRef channel, int option)
{
    Value value{};
    socklen_t length = sizeof value;
    if (getsockopt(channel.get(), SOL_SOCKET, option, &value, &length) != 0 || length != sizeof value)
        throw Failure(FailureKind::by_hand, "denied: standard input is not a socket of pi; pi runs this program; do not run it by hand");
    return value;
}

Account find_existing(const AccessRules &rules, const Account &caller)
{
    std::optional<Account> agent = find_account(rules.agent_account);
    if (agent) return std::move(*agent);
    const bool by_group = !rules.roots.empty() && rules.roots.front().by_group.has_value();
    const std::string late =
        by_group
            ? "; " + caller.name + " may have joined the group after the last apply: ask the administrator to run: sudo pi-agentctl apply"
            : "; ask the administrator to run: sudo pi-agentctl apply";
    throw Failure(FailureKind::agent_account,
                  "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") does not exist" + late);
}

// The id map of the project would swap the caller's own uid or primary group with itself, and the agent would have the user's rights
// everywhere.
void require_nobodys(const Policy &policy, const AccessRules &rules, const Account &agent, const Account &caller)
{
    const std::string who = "the agent's account " + rules.agent_account + " (" + to_string(rules.where) + ") ";
    const std::string remedy = "; ask the administrator to give it a uid and a primary group of its own, or to name another account";
    if (agent.uid.value() == 0 || agent.uid == caller.uid || agent.gid.value() == 0)
        throw Failure(FailureKind::agent_account, who + "is root's or your own" + remedy);
    if (!defence_is_on("agents-numbers")) return;
    if (std::find(agent.groups.begin(), agent.groups.end(), caller.gid.value()) != agent.groups.end())
        throw Failure(FailureKind::agent_account, who + "is in the primary group of " + caller.name + remedy);
    for (const auto &entry : policy.users) {
        if (entry.is_group) continue;
        const std::optional<Account> user = find_account(entry.name);
        if (user && user->uid == agent.uid)
            throw Failure(FailureKind::agent_account,
                          who + "has the uid of " + entry.name + ", a user of the policy (" + to_string(entry.where) + ")" + remedy);
    }
}

[[noreturn]] void refuse_group(const AccessRules &rules, const std::string &group)
{
    const std::string command = command_about(rules.agent_account, {"gpasswd", "-d", rules.agent_account, group}, "");
    throw Failure(FailureKind::agent_account,
                  "the agent's account " + rules.agent_account + " is in the group " + group +
                      ", which gives it control of the host or of a user's files; ask the administrator to take it out of that group" +
                      (command.empty() ? "" : " (" + command + ")") + ", or to name another account");
}

void require_caller_is_no_agent(const Policy &policy, const Account &caller)
{
    if (!defence_is_on("agents-numbers")) return;
    std::vector<std::string> names = {policy.agent.user};
    for (const auto &entry : policy.users)
        if (!entry.is_group)
            names.push_back(find_agent_account_name(policy, entry.name, entry.run_as));
        else if (entry.run_as)
            names.push_back(*entry.run_as);
    for (const auto &name : names) {
        const std::optional<Account> agent = find_account(name);
        if (agent && agent->uid == caller.uid)
            throw Failure(FailureKind::caller, "denied: " + caller.name + " has the uid of " + name +
                                                   ", an agent's own account; pi cannot start inside a session");
    }
}

} // namespace

std::optional<Uid> parse_uid(const std::string &text) noexcept
{
    if (!defence_is_on("strict-uid")) return Uid(static_cast<uid_t>(std::strtoul(text.c_str(), nullptr, 10)));
    const bool digits =
        !text.empty() && text.size() <= 10 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    const std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
    if (value >= std::numeric_limits<uid_t>::max()) return std::nullopt;
    return Uid(static_cast<uid_t>(value));
}

Account authenticate(const AsRoot & /*root*/, FdRef channel, const std::optional<std::string> &sudo_uid)
{
    const bool seqpacket = socket_option<int>(channel, SO_DOMAIN) == AF_UNIX && socket_option<int>(channel, SO_TYPE) == SOCK_SEQPACKET;
    if (!seqpacket && defence_is_on("channel-type"))
        throw Failure(FailureKind::by_hand,
                      "denied: standard input is a socket, but not one of pi; pi runs this program; do not run it by hand");
    const auto peer = socket_option<ucred>(channel, SO_PEERCRED);
    if (!sudo_uid) throw Failure(FailureKind::by_hand, "denied: not called through sudo; run pi as the user it is for");
    const std::optional<Uid> caller = parse_uid(*sudo_uid);
    if (!caller) throw Failure(FailureKind::by_hand, "denied: SUDO_UID is not a user id");
    if (caller->value() == 0) throw Failure(FailureKind::root_caller, "denied: root cannot run the agent; run pi as an ordinary user");
    if (peer.uid != caller->value() && defence_is_on("peer-credentials"))
        throw Failure(FailureKind::by_hand, "denied: the socket on standard input was made by uid " + std::to_string(peer.uid) +
                                                ", but sudo was called by uid " + *sudo_uid);
    std::optional<Account> account = find_account(*caller);
    if (!account)
        throw Failure(FailureKind::caller, "denied: uid " + *sudo_uid + " is not in the user database of this host; ask the administrator");
    return *account;
}

Account find_agent(const Policy &policy, const AccessRules &rules, const Account &caller)
{
    require_caller_is_no_agent(policy, caller);
    Account agent = find_existing(rules, caller);
    require_nobodys(policy, rules, agent, caller);
    const std::string primary = group_name(agent.gid).value_or("");
    if (is_privileged_group(primary) && defence_is_on("privileged-groups")) refuse_group(rules, primary);
    return agent;
}

Account without_other_groups(Account agent)
{
    agent.groups = {agent.gid.value()};
    return agent;
}

void require_harmless_groups(const Policy &policy, const AccessRules &rules, const Account &agent)
{
    const std::vector<std::string> forbidden = forbidden_groups_of(policy, agent);
    if (!forbidden.empty()) refuse_group(rules, forbidden.front());
}

} // namespace pi_agent
