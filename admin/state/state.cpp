// What is kept for each user, and who left it behind.
#include "admin/state/state.hpp"

#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

// --- Removes what is kept, and counts sessions, under the user's lock, so that no start prepares in what is removed.

namespace {

constexpr int removal_patience_seconds = 300; // of one user's state

// As the agent, with a time limit: what it arranged may take for ever.
void do_as_agent(const AsRoot &root, const Account &agent, const std::vector<int> &keep, const std::function<void()> &task)
{
    Child child(root, "remover of the state of " + agent.name, agent, keep, [&](const AsUser & /*agent*/, FdRef channel) {
        task();
        send_answer(channel, "");
    });
    if (!wait_for_input(child.channel(), in_seconds(removal_patience_seconds)))
        throw Failure(FailureKind::no_progress,
                      fmt::format("the removal takes longer than {} seconds; run the command again", removal_patience_seconds));
    child.receive();
}

// Empty while a session lives; otherwise the state with its lock. A start makes its session known before it waits for that lock.
std::optional<StateDirectory> take_idle(const AsRoot &root, const std::string &state_dir, const UserState &state)
{
    auto directory = open_state_directory(root, state_dir, state.name, state.agent, [] {});
    if (count_live_sessions(root, state.user) > 0) return std::nullopt;
    return directory;
}

void prune(const AsRoot &root, const std::string &state_dir, const UserState &state, std::ostream &out)
{
    const std::string user = escape_for_display(state.user);
    const auto directory = take_idle(root, state_dir, state);
    if (!directory) {
        out << user << ": has a session, nothing is removed\n";
        return;
    }
    const auto before = measure_home(root, state.agent, state.home).all;
    do_as_agent(root, state.agent, {state.home.get(), directory->staging.get()}, [&] {
        for (const auto &place : cache_places) {
            const auto [above, name] = split_last(place);
            if (const auto parent = find_own_directory_beneath(state.home, above)) remove_beneath(parent, name);
            // else it does not exist, or is behind a link: the agent's own business
        }
        remove_content_beneath(directory->staging);
    });
    const auto after = measure_home(root, state.agent, state.home).all;
    out << user << ": " << to_size(after < before ? before - after : 0) << " removed, " << to_size(after) << " left\n";
}

void empty_as_agent(const AsRoot &root, const UserState &state, const StateDirectory &directory)
{
    do_as_agent(root, state.agent, {directory.home.get(), directory.staging.get()}, [&] {
        remove_content_beneath(directory.home);
        remove_content_beneath(directory.staging);
    });
    // root's own files, in a directory that only root can enter. The lock stays: whoever waits for it has it open.
    for (const auto &name : names_in(directory.meta))
        if (name != "lock" && unlinkat(directory.meta.get(), name.c_str(), 0) != 0)
            throw_errno("removing meta/" + escape_for_display(name));
}

// To the account that the user's agent has by the policy now. If that account does not exist yet, they become root's, as after a start that
// was cut short: the next start gives them away.
void give_empty_home(const Policy &policy, const UserState &state, const StateDirectory &directory)
{
    const auto name = agent_of_user(policy, state.user);
    if (!name) return; // they keep their owner
    const auto agent = find_account(*name);
    for (const auto &part : {FdRef(directory.home), FdRef(directory.staging)})
        if (fchown(part.get(), agent ? agent->uid.value() : 0, agent ? agent->gid.value() : 0) != 0)
            throw_errno("giving the empty home of the agent of " + escape_for_display(state.user) + " to its account");
}

void remove_directory(FdRef parent, const std::string &name, const std::string &path)
{
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return;
    if (errno == ENOTEMPTY || errno == EEXIST)
        throw Failure(ExitStatus::configuration, path + " contains something that is not pi-agent's; look at it, and move it away");
    throw_errno("removing " + path);
}

// The checkpoints, and of the record what its user may read; with "" those of all. The record itself stays.
void remove_own_record(const std::string &name)
{
    for (const auto *path : {own_records_path, undo_path}) {
        const auto place = split_last(path + (name.empty() ? "" : "/" + name));
        const auto parent = if_there([&] { return open_trusted(place.first, O_RDONLY | O_DIRECTORY, "directory of records"); });
        if (parent) remove_beneath(parent, place.second);
    }
}

void remove_users_state(const AsRoot &root, const std::string &state_dir, FdRef users, const UserState &state)
{
    const auto directory = take_idle(root, state_dir, state);
    if (!directory) throw Failure(FailureKind::busy, "a session of " + escape_for_display(state.user) + " has just started; stop it first");
    empty_as_agent(root, state, *directory);
    const auto own = open_beneath(users, state.name, O_RDONLY | O_DIRECTORY);
    if (unlinkat(directory->meta.get(), "lock", 0) != 0) throw_errno("removing the lock of " + state.path);
    for (const auto *name : {"meta", "staging", "home"})
        remove_directory(own, name, state.path + "/" + name);
    remove_directory(users, state.name, state.path);
    remove_own_record(state.name);
}

// A sweep takes only some at once, and leaves the rest to the next.
void sweep_scratch(const AsRoot &root, const std::string &state_dir)
{
    const auto parent = open_trusted(state_dir + "/" + scratch_parent, O_RDONLY | O_DIRECTORY, "directory of temporary files");
    for (std::size_t before = SIZE_MAX, left = names_in(parent).size(); left > 0 && left < before; left = names_in(parent).size()) {
        before = left;
        ScratchSweep(root, state_dir).finish();
    }
}

// --- Shows what is kept for each user; for others than root, for themselves alone.

std::vector<SizeOfState> sizes_for_caller(const std::optional<std::string> &user)
{
    if (::geteuid() == 0) return measure_states(AsRoot::claim(), load_policy(policy_path).agent.state_dir, user);
    require_own("state", user, "looks into the homes of other users' agents");
    return ask_own({OwnSubject::state}).states;
}

// --- Compares what is kept, and which accounts there are, with who may still come back.

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
    if (!is_agents_number(account.uid)) return "its number is not one of an account that apply made";
    if (!group || std::ranges::find(account.groups, group->value()) == account.groups.end())
        return "it is not in the group " + policy.agent.group;
    if (has_home) return "the home of its agent stays";
    if (use.has_unknown_account || use.accounts.contains(account.name)) return "a session may run as it; end that first";
    return "";
}

} // namespace

void run_state_prune(const std::optional<std::string> &user, bool yes, std::ostream &out)
{
    const auto root = claim_root("state prune", "removes files of agents, so only root can run it");
    const auto state_dir = load_policy(policy_path).agent.state_dir;
    std::vector<UserState> states = user ? std::vector<UserState>{} : find_states(root, state_dir, {});
    if (user) states.push_back(find_state(root, state_dir, *user));
    require_consent("Remove the caches of " + (user ? escape_for_display(*user) : "all users who have no session now") +
                        " and the temporary files that sessions left?",
                    yes);
    std::string problems;
    for (const auto &state : states) {
        try {
            prune(root, state_dir, state, out);
        } catch (const Failure &failure) { // one user keeps no other's from being pruned
            problems += (problems.empty() ? "" : "\n") + escape_for_display(state.user) + ": " + failure.what();
        }
    }
    sweep_scratch(root, state_dir);
    if (!problems.empty()) throw Failure(ExitStatus::system_failure, problems);
}

void run_state_reset(const std::string &user, bool yes, std::ostream &out)
{
    const auto root = claim_root("state reset", "removes files of agents, so only root can run it");
    const auto policy = load_policy(policy_path);
    const auto &state_dir = policy.agent.state_dir;
    const auto state = find_state(root, state_dir, user);
    const std::string shown = escape_for_display(user);
    const auto refuse = [&] {
        throw Failure(ExitStatus::limit, shown + " has a session; end it first: pi-agentctl stop --user " + name_as_word(user));
    };
    if (count_live_sessions(root, user) > 0) refuse();
    require_consent("Remove everything in " + state.path + "/home, with the agent's own sessions, logins and installed programs?", yes);
    const auto directory = take_idle(root, state_dir, state);
    if (!directory) refuse();
    empty_as_agent(root, state, *directory);
    give_empty_home(policy, state, *directory);
    out << "the state of " << shown << " is empty: the next start is like the first\n";
}

std::optional<std::string> agent_of_user(const Policy &policy, const std::string &name)
{
    const auto user = find_account(name);
    if (!user) return std::nullopt;
    try {
        const auto access = find_access_rules(policy, *user, policy_path);
        const auto *rules = std::get_if<AccessRules>(&access);
        return rules == nullptr ? std::nullopt : std::optional(rules->agent_account);
    } catch (const PolicyError &) { // it contradicts itself about this user, and concerns nobody else
        return std::nullopt;
    }
}

void remove_state_of(const AsRoot &root, const std::string &state_dir, const std::string &name)
{
    const auto state = find_state(root, state_dir, name);
    remove_users_state(root, state_dir, open_trusted(state_dir + "/users", O_RDONLY | O_DIRECTORY, "state directory"), state);
}

void remove_all_state(const AsRoot &root, const std::string &state_dir)
{
    for (const auto &state : find_states(root, state_dir, {}))
        remove_users_state(root, state_dir, open_trusted(state_dir + "/users", O_RDONLY | O_DIRECTORY, "state directory"), state);
    sweep_scratch(root, state_dir);
    remove_own_record("");
    const auto top = open_trusted(state_dir, O_RDONLY | O_DIRECTORY, "state directory");
    for (const auto *name : {"users", "sessions"})
        remove_directory(top, name, state_dir + "/" + name);
    const auto parent = open_trusted(parent_of(state_dir), O_RDONLY | O_DIRECTORY, "parent of the state directory");
    const std::string action = "examining " + state_dir;
    if (examine(top, action).st_dev != examine(parent, action).st_dev) return; // a mount point is not ours to remove
    remove_directory(parent, split_last(state_dir).second, state_dir);
}

// Not in a namespace without a name: nlohmann-json finds it by its argument.
static void to_json(nlohmann::json &json, const SizeOfState &size)
{
    const bool is_known = !size.home.empty();
    json = {{"user", text_or_null(size.user)},
            {"account", text_or_null(size.account)},
            {"path", size.path},
            {"sessions", size.sessions},
            {"home_bytes", is_known ? nlohmann::json(size.home.front().all) : nlohmann::json(nullptr)},
            {"caches_bytes", is_known ? nlohmann::json(size.home.front().caches) : nlohmann::json(nullptr)},
            {"scratch_bytes", size.scratch},
            {"problem", text_or_null(size.problem)}};
}

UserState find_state(const AsRoot &root, const std::string &state_dir, const std::string &user)
{
    auto states = find_states(root, state_dir, user);
    if (states.empty()) throw NothingToDo("no state of " + escape_for_display(user) + " is kept in " + state_dir + "/users");
    return std::move(states.front());
}

void run_state(const std::optional<std::string> &user, bool json, std::ostream &out)
{
    const auto sizes = sizes_for_caller(user);
    if (json) return print_json({{"states", sizes}}, out);
    if (sizes.empty()) {
        if (::geteuid() != 0) throw NothingToDo("no state is kept of you");
        throw NothingToDo(user ? "no state is kept of " + escape_for_display(*user) : "no state is kept of any user");
    }
    std::vector<Row> rows;
    for (const auto &size : sizes) {
        const bool is_known = !size.home.empty();
        rows.push_back({size.user, size.account, std::to_string(size.sessions), is_known ? to_size(size.home.front().all) : "",
                        is_known ? to_size(size.home.front().caches) : "", to_size(size.scratch),
                        size.path + (size.problem.empty() ? "" : " (" + size.problem + ")")});
    }
    out << to_table({"USER", "AGENT", "SESSIONS", "HOME", "CACHES", "SCRATCH", "PATH"}, rows);
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
    if (const auto uid = uid_in(name)) return database_.by_uid(*uid);
    return database_.by_name(name);
}

std::string People::doubt_about(const std::string &name) const
{
    const bool is_vouched = std::ranges::find(gone_, name) != gone_.end();
    if (database_.services.empty() || is_vouched || find(name) || !defence_is_on("unknown-people")) return "";
    return fmt::format(
        "the service for names of users may only not answer just now ({} in {}); if it is so: sudo pi-agentctl user prune --gone {}",
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
    const People people(policy,
                        {[](const std::string &name) { return find_account(name); }, [](Uid uid) { return find_account(uid); }, find_group,
                         group_members, services_of_users()},
                        gone);
    const auto made = made_agent_accounts();
    // The accounts that may own a home: those that apply made, and those that the policy names.
    std::set<std::string> agents;
    for (const auto &account : made)
        agents.insert(account.account.name);
    for (const auto &account : needed_agent_accounts(policy, group_members))
        agents.insert(account.name);
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
