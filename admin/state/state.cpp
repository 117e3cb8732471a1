// Shows what is kept for each user, and removes it under the user's lock, so that no start prepares in it.
#include "admin/state/state.hpp"

#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/as_agent/home.hpp"
#include "runner/root/session/scratch.hpp"

#include <fmt/format.h>

namespace pi_agent {

// Holds the user's lock meanwhile, so that no start prepares in what is removed; counts sessions under it.

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
        throw Failure(ExitStatus::system_failure,
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
            const auto parent = find_own_directory_beneath(state.home, above);
            if (parent) remove_beneath(parent, name); // else it does not exist, or is behind a link: the agent's own business
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
    const auto user = find_account(state.user);
    const auto access = user ? find_access_rules(policy, *user, policy_path) : std::variant<AccessRules, NotAuthorised>(NotAuthorised{""});
    const auto *rules = std::get_if<AccessRules>(&access);
    if (rules == nullptr) return; // a user who may not start pi: they keep their owner
    const auto agent = find_account(rules->agent_account);
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

} // namespace

void run_state_prune(const std::optional<std::string> &user, bool yes, std::ostream &out)
{
    const auto root = claim_root("state prune", "removes files of agents, so only root can run it");
    const auto state_dir = load_policy(policy_path).agent.state_dir;
    std::vector<UserState> states;
    if (user)
        states.push_back(find_state(root, state_dir, *user));
    else
        states = find_states(root, state_dir, {});
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
    const auto top = open_trusted(state_dir, O_RDONLY | O_DIRECTORY, "state directory");
    for (const auto *name : {"users", "sessions"})
        remove_directory(top, name, state_dir + "/" + name);
    const auto parent = open_trusted(parent_of(state_dir), O_RDONLY | O_DIRECTORY, "parent of the state directory");
    const std::string action = "examining " + state_dir;
    if (examine(top, action).st_dev != examine(parent, action).st_dev) return; // a mount point is not ours to remove
    remove_directory(parent, split_last(state_dir).second, state_dir);
}

// Shows what is kept for each user; for others than root, for themselves alone.

namespace {

Row to_row(const SizeOfState &size)
{
    const bool is_known = !size.home.empty();
    return {size.user,
            size.account,
            std::to_string(size.sessions),
            is_known ? to_size(size.home.front().all) : "",
            is_known ? to_size(size.home.front().caches) : "",
            to_size(size.scratch),
            size.path + (size.problem.empty() ? "" : " (" + size.problem + ")")};
}

std::vector<SizeOfState> sizes_for_caller(const std::optional<std::string> &user)
{
    if (::geteuid() == 0) return measure_states(AsRoot::claim(), load_policy(policy_path).agent.state_dir, user);
    require_own("state", user, "looks into the homes of other users' agents");
    return ask_own({OwnSubject::state}).states;
}

} // namespace

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
    if (states.empty()) throw Nothing("no state of " + escape_for_display(user) + " is kept in " + state_dir + "/users");
    return std::move(states.front());
}

void run_state(const std::optional<std::string> &user, bool json, std::ostream &out)
{
    const auto sizes = sizes_for_caller(user);
    if (json) return print_json({{"states", sizes}}, out);
    if (sizes.empty()) {
        if (::geteuid() != 0) throw Nothing("no state is kept of you");
        throw Nothing(user ? "no state is kept of " + escape_for_display(*user) : "no state is kept of any user");
    }
    std::vector<Row> rows;
    for (const auto &size : sizes)
        rows.push_back(to_row(size));
    out << to_table({"USER", "AGENT", "SESSIONS", "HOME", "CACHES", "SCRATCH", "PATH"}, rows);
}

} // namespace pi_agent
