// Compares what is kept, and which accounts there are, with who may still come back.
#include "admin/state/state.hpp"

#include "common/decide/decision.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/root/session/record.hpp"

#include <fmt/ranges.h>
#include <sstream>

namespace pi_agent {

namespace {

constexpr const char *services_path = "/etc/nsswitch.conf";
constexpr std::size_t services_limit = 64U << 10U;
constexpr std::array<std::string_view, 2> own_services = {"files", "systemd"}; // whose answer "not found" is the whole truth
constexpr uid_t first_ordinary_uid = 1000;                                     // systemd-sysusers makes no account from here on

// What sessions use now.
struct InUse {
    std::set<uid_t> users;
    std::set<std::string> accounts;
    bool has_unknown_user = false;    // who started it is not in the user database any more
    bool has_unknown_account = false; // it is still being prepared
};

InUse find_use(const AsRoot &root)
{
    InUse use;
    for (const auto &live : live_sessions(root)) {
        use.users.insert(live.user.value());
        use.has_unknown_user = use.has_unknown_user || !find_account(live.user);
        const auto session = try_open_session(open_sessions(), live.id);
        if (!session) continue; // it has just ended
        const auto record = read_open_record(session);
        if (record)
            use.accounts.insert(record->subject.account);
        else
            use.has_unknown_account = true;
    }
    return use;
}

std::optional<Uid> uid_in(const std::string &name)
{
    const auto number = name.starts_with('@') ? to_number<uid_t>(std::string_view(name).substr(1)) : std::nullopt;
    return number ? std::optional(Uid(*number)) : std::nullopt;
}

// What keeps a home that nobody comes back to. Its owner and group are what apply and the first start gave it, or nobody's any more.
std::string why_home_stays(const UserState &state, const std::set<std::string> &agents, const InUse &use)
{
    const auto user = find_account(state.user);
    if (use.has_unknown_user) return "a session of somebody runs whom this host does not know any more; 'pi-agentctl apply' ends it";
    if (user && use.users.contains(user->uid.value())) return escape_for_display(state.user) + " has a session; end it first";
    const auto owner = find_account(state.agent.uid);
    if (!owner || !defence_is_on("left-owner")) return "";
    if (!agents.contains(owner->name))
        return "it belongs to " + escape_for_display(owner->name) +
               ", and an agent's home belongs to an agent's account; look at it, and move it away";
    if (owner->gid != state.agent.gid)
        return "its group is not the primary group of " + escape_for_display(owner->name) + "; look at it, and move it away";
    return "";
}

std::string why_account_stays(const Account &account, const Policy &policy, bool has_home, const InUse &use)
{
    const auto group = find_group(policy.agent.group);
    if (account.uid.value() >= first_ordinary_uid) return "its number is not one of an account that apply made";
    if (!group || std::find(account.groups.begin(), account.groups.end(), group->value()) == account.groups.end())
        return "it is not in the group " + policy.agent.group;
    if (has_home) return "the home of its agent stays";
    if (use.has_unknown_account || use.accounts.contains(account.name)) return "a session may run as it; end that first";
    return "";
}

// The accounts that may own a home: those that apply made, and those that the policy names.
std::set<std::string> names_of_agents(const Policy &policy, const std::vector<MadeAccount> &made)
{
    std::set<std::string> names;
    for (const auto &account : made)
        names.insert(account.account.name);
    for (const auto &account : needed_agent_accounts(policy, group_members))
        names.insert(account.name);
    return names;
}

} // namespace

UserDatabase user_database()
{
    const auto text = if_there([] { return read_trusted_file(services_path, services_limit, "list of services for names"); });
    return {[](const std::string &name) { return find_account(name); }, [](Uid uid) { return find_account(uid); }, find_group,
            group_members, services_of_users(text)};
}

std::vector<std::string> services_of_users(const std::string &nsswitch)
{
    std::vector<std::string> services;
    std::istringstream lines(nsswitch);
    for (std::string line; std::getline(lines, line);) {
        line.resize(std::min(line.size(), line.find('#')));
        const std::size_t colon = line.find(':');
        std::istringstream database(line.substr(0, colon));
        std::string name;
        if (colon == std::string::npos || !(database >> name) || name != "passwd") continue;
        std::istringstream words(line.substr(colon + 1));
        bool is_action = false; // in brackets, such as [NOTFOUND=return]
        for (std::string word; words >> word;) {
            is_action = is_action || word.front() == '[';
            if (!is_action && std::find(own_services.begin(), own_services.end(), word) == own_services.end()) services.push_back(word);
            if (word.back() == ']') is_action = false;
        }
    }
    return services;
}

People::People(const Policy &policy, UserDatabase database, std::vector<std::string> gone)
    : policy_(policy), database_(std::move(database)), gone_(std::move(gone))
{
    const auto require_known = [](bool is_known, const UserEntry &entry) {
        if (is_known || !defence_is_on("known-people")) return;
        throw Failure(ExitStatus::configuration,
                      to_string(entry.where) + ": this host does not know " + quote((entry.is_group ? "%" : "") + entry.name) +
                          ", so nobody can tell who left: the user database may be incomplete just now; see whether the directory "
                          "service answers, or take the entry out of the policy");
    };
    for (const auto &entry : policy.users) {
        if (!entry.is_group) {
            require_known(database_.by_name(entry.name).has_value(), entry);
            named_.insert(entry.name);
            continue;
        }
        require_known(database_.group(entry.name).has_value(), entry);
        for (const auto &member : database_.members(entry.name)) {
            if (named_.insert(member).second && !database_.by_name(member)) has_unknown_ones_ = true;
        }
    }
}

std::string People::why_left(const std::string &name) const
{
    if (named_.contains(name)) return "";
    const auto account = find(name);
    if (!account) return uid_in(name) && has_unknown_ones_ ? "" : escape_for_display(user_of_short_name(name)) + " left this host";
    if (named_.contains(account->name)) return "";
    try {
        if (std::holds_alternative<AccessRules>(find_access_rules(policy_, *account, policy_path))) return "";
    } catch (const PolicyError &) { // groups of the policy contradict each other about somebody who is in them
        return "";
    }
    return escape_for_display(account->name) + " left the policy";
}

std::optional<Account> People::find(const std::string &name) const
{
    const auto uid = uid_in(name);
    return uid ? database_.by_uid(*uid) : database_.by_name(name);
}

std::string People::doubt_about(const std::string &name) const
{
    const bool is_vouched = std::find(gone_.begin(), gone_.end(), name) != gone_.end();
    if (database_.services.empty() || is_vouched || find(name) || !defence_is_on("unknown-people")) return "";
    return fmt::format(
        "the service for names of users may only not answer just now ({} in {}); if it is so: sudo pi-agentctl prune --gone {}",
        fmt::join(database_.services, ", "), services_path, name_as_word(name));
}

std::vector<Left> find_left(const AsRoot &root, const Policy &policy, const std::vector<std::string> &gone)
{
    for (const auto &name : gone)
        if (find_account(user_of_short_name(name)))
            throw Failure(ExitStatus::usage, "--gone " + quote(name) + ": this host knows that user; remove them from it first");

    Problems problems; // an account whose home is where nobody looks for it would look as if it had none
    check_state_place(policy, &root, problems);
    problems.throw_if_any();
    const People people(policy, user_database(), gone);
    const auto made = made_agent_accounts();
    const auto agents = names_of_agents(policy, made);
    const auto use = find_use(root);
    std::set<uid_t> owners;      // of the homes that stay
    std::set<std::string> stays; // whose these are
    std::vector<Left> left;
    for (const auto &state : find_states(root, policy.agent.state_dir, {})) {
        const auto why = people.why_left(state.name);
        auto kept = why.empty() ? "" : people.doubt_about(state.name);
        if (!why.empty() && kept.empty()) kept = why_home_stays(state, agents, use);
        if (why.empty() || !kept.empty()) {
            owners.insert(state.agent.uid.value());
            stays.insert(state.name);
        }
        if (!why.empty()) left.push_back({Left::Kind::home, state.user, state.name, state.agent.name, state.path, why, kept});
    }
    for (const auto &[account, user] : made) {
        const auto why = user.empty() ? "" : people.why_left(user);
        if (why.empty()) continue; // of several users, or of one who stays
        auto kept = people.doubt_about(user);
        if (kept.empty()) kept = why_account_stays(account, policy, owners.contains(account.uid.value()) || stays.contains(user), use);
        left.push_back({Left::Kind::account, user_of_short_name(user), account.name, account.name, "", why, kept});
    }
    return left;
}

std::string to_text(const Left &left)
{
    return left.kind == Left::Kind::home ? "the home of " + escape_for_display(left.user) + "'s agent, " + left.path
                                         : "the account " + left.name;
}

} // namespace pi_agent
