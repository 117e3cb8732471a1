// Accounts of agents, and the other name of the command.
#include "admin/host/host_things.hpp"
#include "admin/programs/program.hpp"
#include "common/base/files.hpp"
#include "common/decide/decision.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

bool is_member(const Account &account, Gid group) noexcept
{
    return std::ranges::find(account.groups, group.value()) != account.groups.end();
}

class UniqueAccounts {
public:
    void add(AgentAccount account)
    {
        const auto [place, is_new] = places_.emplace(account.name, accounts_.size());
        if (is_new)
            accounts_.push_back(std::move(account));
        else if (auto &known = accounts_[place->second]; known.user != account.user)
            known.user.clear();
    }
    std::vector<AgentAccount> all() { return std::move(accounts_); }

private:
    std::vector<AgentAccount> accounts_;
    std::map<std::string, std::size_t> places_; // by name: a group may have thousands of members
};

// --- Another name of the command is a symlink to `pi`; its completions and its page lead to those of `pi`.

constexpr std::size_t names_note_limit = std::size_t{64} << 10U;
constexpr mode_t part_mode = 0644;
constexpr mode_t names_note_mode = 0600;

using CommandNames = std::set<std::string>;

// One file or symlink of a name.
struct Part {
    std::string directory, name;
    std::string text; // of the file, or where the symlink leads
    bool is_link = false;
    std::string own; // the file of `pi` there, without which there is nothing to lead to

    [[nodiscard]] std::string path() const { return directory + "/" + name; }
};

// The symlink first.
std::vector<Part> parts_of(const std::string &command, const CommandPlaces &places)
{
    const auto [directory, wrapper] = split_last(places.wrapper);
    const std::string made = "# Made by pi-agentctl apply: the policy calls the command " + command + ".\n";
    const std::string bash = places.data + "/bash-completion/completions";
    std::vector<Part> parts = {
        {directory, command, wrapper, true, wrapper},
        {bash, command, made + ". " + bash + "/" + wrapper + "\ncomplete -F _pi_of_pi_agent " + command + "\n", false, wrapper},
        {places.data + "/fish/vendor_completions.d", command + ".fish", made + "complete -c " + command + " -w " + wrapper + "\n", false,
         wrapper + ".fish"}};
    for (const char *zsh : {"/zsh/vendor-completions", "/zsh/site-functions"}) // Debian has its own place
        parts.push_back(
            {places.data + zsh, "_" + command, "#compdef " + command + "\n" + made + "_" + wrapper + " \"$@\"\n", false, "_" + wrapper});
    for (const char *page : {"pi.1.gz", "pi.1"})
        parts.push_back({places.data + "/man/man1", command + ".1", ".so man1/pi.1\n", false, page});
    return parts;
}

enum class Found { nothing, made, other, no_place };

UniqueFd open_directory(const Part &part)
{
    return open_trusted(part.directory, O_RDONLY | O_DIRECTORY, "directory of a name of the command");
}

// Whether this is exactly what apply makes.
bool is_made(FdRef directory, const Part &part, const struct stat &facts)
{
    if (facts.st_uid != 0) return false;
    if (part.is_link) return S_ISLNK(facts.st_mode) && read_link(directory, part.name) == part.text;
    if (!S_ISREG(facts.st_mode) || std::cmp_not_equal(facts.st_size, part.text.size())) return false;
    return read_trusted_file(part.path(), part.text.size(), "file of a name of the command") == part.text;
}

Found look_at_part(const Part &part)
{
    const auto directory = if_there([&] { return open_directory(part); });
    if (!directory || !has_name(directory, part.own, "examining " + part.directory)) return Found::no_place;
    struct stat facts {};
    if (::fstatat(directory.get(), part.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("examining " + part.path());
        return Found::nothing;
    }
    return is_made(directory, part, facts) ? Found::made : Found::other;
}

void make_part(const Part &part)
{
    const auto directory = open_directory(part);
    if (!part.is_link) return replace_root_file(directory, part.name, part.text, part_mode, part.path());
    if (::symlinkat(part.text.c_str(), directory.get(), part.name.c_str()) != 0) throw_errno("cannot create " + part.path());
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + part.path() + " to disk");
}

void remove_name(const std::string &command, const CommandPlaces &places)
{
    for (const auto &part : parts_of(command, places))
        if (const auto found = look_at_part(part);
            found == Found::made || (found == Found::other && part.is_link && !defence_is_on("own-command-name")))
            remove_root_file(open_directory(part), part.name, part.path());
}

CommandNames read_command_names(const CommandPlaces &places)
{
    const auto text = if_there([&] { return read_trusted_file(places.note, names_note_limit, "list of names of the command"); });
    CommandNames names;
    for (const auto line : split(text, '\n')) {
        if (!is_plain_name(std::string(line))) throw Failure(ExitStatus::configuration, places.note + " is damaged; remove it");
        names.emplace(line);
    }
    return names;
}

void write_command_names(const CommandPlaces &places, const CommandNames &names)
{
    const auto [above, name] = split_last(places.note);
    const auto directory = open_trusted(above, O_RDONLY | O_DIRECTORY, "directory of applied policies");
    if (names.empty()) return remove_root_file(directory, name, places.note);
    const auto text = joined(names, "", [](const auto &command) { return command + "\n"; });
    replace_root_file(directory, name, text, names_note_mode, places.note);
}

// --- Many accounts.

constexpr std::size_t most_of_system = 200; // of the 900 numbers that a host has for all of its services
constexpr std::size_t accounts_at_once = 1000;
constexpr const char *cannot_create = "systemd-sysusers cannot create the agents' accounts";

// With numbers of our own, and the files alone (--root): then systemd-sysusers need not ask the whole database for each, which took eight
// seconds for 6,000. What comes by itself gets its number from the whole database.
void create_many(const Policy &policy, const MissingAccounts &missing, Changes &changes)
{
    MissingAccounts few{missing.group, {}, {}};
    MissingAccounts many;
    for (const auto &account : missing.accounts)
        (account.name == policy.agent.user ? few : many).accounts.push_back(account);
    if (few.group || !few.accounts.empty())
        changes.make(few.accounts.empty() ? "create the group " + policy.agent.group : "create the account " + policy.agent.user, [&] {
            require_success({"systemd-sysusers", "-"}, cannot_create, sysusers_text(policy, few));
        });
    const auto numbers = free_numbers(many.accounts.size());
    for (std::size_t begin = 0; begin < many.accounts.size(); begin += accounts_at_once) {
        const auto end = std::min(begin + accounts_at_once, many.accounts.size());
        const auto part = [&](const auto &all) {
            return std::vector(all.begin() + std::ptrdiff_t(begin), all.begin() + std::ptrdiff_t(end));
        };
        const MissingAccounts some{false, part(many.accounts), {}};
        changes.make(fmt::format("create the accounts {} to {} ({} of {})", some.accounts.front().name, some.accounts.back().name, end,
                                 many.accounts.size()),
                     [&] {
                         require_success({"systemd-sysusers", "--root=/", "-"}, cannot_create, sysusers_text(policy, some, part(numbers)));
                     });
    }
    const MissingAccounts members{false, {}, missing.members};
    if (!members.members.empty())
        changes.make(fmt::format("add {} accounts to the group {}", members.members.size(), policy.agent.group), [&] {
            require_success({"systemd-sysusers", "-"}, cannot_create, sysusers_text(policy, members));
        });
}

std::string problem_of_taken(const Part &link)
{
    return link.path() + " exists already, and is not a name of pi";
}

} // namespace

std::string creatable_name(std::string name)
{
    std::ranges::replace(name, '.', '_');
    return name.substr(0, creatable_length);
}

std::vector<AgentAccount> needed_agent_accounts(const Policy &policy)
{
    return needed_agent_accounts(policy, group_members, [](const std::string &user) { return find_account(user).has_value(); });
}

std::vector<AgentAccount> needed_agent_accounts(const Policy &policy, const MembersOf &members_of, const IsKnown &is_known)
{
    UniqueAccounts accounts;
    const bool per_user = policy.agent.accounts == Accounts::per_user;
    const auto is_named = [](const UserEntry &entry) { return entry.run_as.has_value(); };
    if (!per_user && !std::ranges::all_of(policy.users, is_named)) accounts.add({policy.agent.user, "", policy.agent.where, "agent.user"});
    std::set<std::string> own_entries;
    for (const auto &entry : policy.users)
        if (!entry.is_group) own_entries.insert(entry.name);
    for (const auto &entry : policy.users) {
        const auto key = entry_key(entry);
        if (!entry.is_group && per_user && !entry.run_as && !is_known(entry.name)) {
            continue; // nobody can start it: check warns
        } else if (!entry.is_group) {
            accounts.add(
                {find_agent_account_name(policy, entry.name, entry.run_as), per_user || entry.run_as ? entry.name : "", entry.where, key});
        } else if (entry.run_as) {
            accounts.add({*entry.run_as, "", entry.run_as_where, key + ".run_as"});
        } else if (per_user) {
            for (const auto &member : members_of(entry.name)) {
                const auto name = find_agent_account_name(policy, member, std::nullopt);
                if (member == "root" || is_agent_account(policy, member) || own_entries.contains(member) || !is_account_name(member) ||
                    !is_plain_name(name) || !is_known(member))
                    continue;
                accounts.add({name, member, entry.where, key});
            }
        }
    }
    return accounts.all();
}

void check_agent_accounts(const Policy &policy, const std::vector<AgentAccount> &needed, Problems &problems)
{
    if (is_privileged_group(policy.agent.group))
        problems.add(policy.agent.where, "agent.group", quote(policy.agent.group) + " is a group of administrators",
                     "use a group of its own");
    // Users that the policy names, or authorises through a group today. An agent's account in such a group is another problem.
    std::vector<Account> users;
    for (const auto &entry : policy.users) {
        const auto names = entry.is_group ? group_members(entry.name) : std::vector<std::string>{entry.name};
        for (const auto &name : names) {
            if (is_agent_account(policy, name)) continue;
            if (auto account = find_account(name)) users.push_back(std::move(*account));
        }
    }
    std::multimap<uid_t, const Account *> by_uid;
    std::multimap<gid_t, const Account *> by_gid; // of their primary groups
    for (const auto &user : users) {
        by_uid.emplace(user.uid.value(), &user);
        by_gid.emplace(user.gid.value(), &user);
    }
    const auto each_of = [](const auto &users_by, auto number, const auto &task) {
        const auto [begin, end] = users_by.equal_range(number);
        for (auto user = begin; user != end; ++user)
            task(*user->second);
    };
    for (const auto &agent : needed) {
        if (const auto account = find_account(agent.name)) {
            const auto refuse = [&](const std::string &problem, const std::string &other_remedy = {}) {
                problems.add(agent.where, agent.key, "the agent's account " + quote(agent.name) + " " + problem,
                             other_remedy + "name another account");
            };
            if (account->uid == Uid(0)) refuse("is root under another name (uid 0)");
            each_of(by_uid, account->uid.value(),
                    [&](const Account &user) { refuse("has the uid of " + quote(user.name) + ", a user of this policy"); });
            for (const gid_t gid : account->groups)
                each_of(by_gid, gid,
                        [&](const Account &user) { refuse("is in the primary group of " + quote(user.name) + ", a user of this policy"); });
            for (const auto &group : forbidden_groups_of(policy, *account))
                refuse("is in the group " + quote(group),
                       command_about(agent.name, {"gpasswd", "-d", agent.name, group}, "take it out of the group") + ", or ");
        } else if (policy.agent.create_user && !can_be_created(agent.name)) {
            const std::string remedy = agent.user.empty() ? "name another account"
                                                          : fmt::format("give {} an entry of their own with another name (run_as: {})",
                                                                        agent.user, creatable_name(agent.name));
            problems.add(agent.where, agent.key,
                         "systemd-sysusers cannot create the account " + quote(agent.name) + ": a dot, or more than 31 characters",
                         remedy + ", or create the account yourself");
        }
    }
    const auto group = policy.wrapper.hide_direct_binary ? find_group(policy.agent.group) : std::nullopt;
    for (const auto &user : users)
        if (group && is_member(user, *group))
            problems.add(
                policy.agent.where, "agent.group",
                "the user " + quote(user.name) + " is in the group " + quote(policy.agent.group) + " and so can reach the agent's program",
                command_about(policy.agent.group, {"gpasswd", "-d", user.name, policy.agent.group}, "take the user out of the group") +
                    ", or use a group of its own");
}

MissingAccounts find_missing(const Policy &policy, const std::vector<AgentAccount> &needed)
{
    MissingAccounts missing;
    const auto group = find_group(policy.agent.group);
    missing.group = !group.has_value();
    for (const auto &agent : needed) {
        const auto account = find_account(agent.name);
        if (!account)
            missing.accounts.push_back(agent);
        else if (!group || !is_member(*account, *group))
            missing.members.push_back(agent.name);
    }
    return missing;
}

std::string sysusers_text(const Policy &policy, const MissingAccounts &missing, const std::vector<uid_t> &numbers)
{
    const auto &agent = policy.agent;
    std::string text;
    auto number = numbers.begin();
    if (missing.group) text += fmt::format("g {} - -\n", agent.group);
    for (const auto &account : missing.accounts) {
        const bool main = account.name == agent.user;
        // An account of one user has a group of its own, so that no other account gets the agent's files through a group.
        const auto id = main ? "-:" + agent.group : number == numbers.end() ? std::string("-") : std::to_string(*number++);
        const auto purpose =
            std::string(account.user.empty() ? made_for_several : made_for_one) + (account.user.empty() ? "" : short_name_of(account.user));
        text += fmt::format("u {} {} \"{}\" {} -\n", account.name, id, purpose, default_state_dir);
        if (!main) text += fmt::format("m {} {}\n", account.name, agent.group);
    }
    for (const auto &member : missing.members)
        text += fmt::format("m {} {}\n", member, agent.group);
    return text;
}

void create_accounts(const AsRoot & /*root*/, const Policy &policy, const std::vector<AgentAccount> &needed, Changes &changes)
{
    const auto missing = find_missing(policy, needed);
    std::vector<std::string> orders;
    Problems problems;
    const auto want = [&](const Position &where, const std::string &key, const std::string &thing, const std::string &order) {
        orders.push_back(order);
        if (!policy.agent.create_user) problems.add(where, key, thing, order + ", or say 'create_user: true'");
    };
    if (missing.group)
        want(policy.agent.where, "agent.group", "this host has no group " + policy.agent.group, "create the group " + policy.agent.group);
    for (const auto &agent : missing.accounts)
        want(agent.where, agent.key, "this host has no account " + agent.name, "create the account " + agent.name);
    for (const auto &member : missing.members)
        want(policy.agent.where, "agent.group", "the account " + member + " is not in the group " + policy.agent.group,
             "add the account " + member + " to the group " + policy.agent.group);
    problems.throw_if_any();
    if (orders.empty()) return;
    if (needed.size() > most_of_system) {
        create_many(policy, missing, changes);
    } else {
        // One call makes them all; the others only print their changes.
        for (const auto &order : orders)
            changes.make(order, [&] {
                if (&order == &orders.front()) require_success({"systemd-sysusers", "-"}, cannot_create, sysusers_text(policy, missing));
            });
    }
    if (changes.dry_run()) return;
    if (const auto left = find_missing(policy, needed); left.group || !left.accounts.empty() || !left.members.empty())
        throw Failure(ExitStatus::system_failure, "systemd-sysusers reported success, but an account or membership is still missing: run "
                                                  "'pi-agentctl apply' again, or create it yourself");
}

void remove_agent_account(const AsRoot & /*root*/, const std::string &name, Changes &changes)
{
    changes.make("remove the account " + name, [&] { require_success({"userdel", name}, "cannot remove the account " + name); });
}

void remove_group(const std::string &name)
{
    require_success({"groupdel", name}, "cannot remove the group " + name);
}

CommandPlaces places_of_command()
{
    return {build::wrapper_path, parent_of(parent_of(build::agents_path)), path_of_applied(command_note)};
}

void check_command_name(const Policy &policy, const CommandPlaces &places, Problems &problems)
{
    const auto &wrapper = policy.wrapper;
    const auto report = [&](const std::string &problem, const std::string &remedy) {
        problems.add(wrapper.command_name_where, "wrapper.command_name", problem, remedy);
    };
    if (wrapper.command_name == split_last(places.wrapper).second) return;
    if (build::is_system_managed)
        return report("the command of this system is called " + split_last(places.wrapper).second,
                      "change the name in the configuration of the system");
    try {
        const auto link = parts_of(wrapper.command_name, places).front();
        if (look_at_part(link) == Found::other) report(problem_of_taken(link), "choose another name, or move it away");
    } catch (const Failure &failure) {
        report(failure.what(), "");
    }
}

void install_command(const AsRoot & /*root*/, const std::string &name, const CommandPlaces &places, Changes &changes)
{
    const CommandNames noted = read_command_names(places);
    CommandNames left = noted;
    const auto parts = parts_of(name, places);
    const auto link = look_at_part(parts.front());
    const bool is_theirs = link == Found::made && !noted.contains(name); // the administrator made the same symlink, and keeps it
    if (name != split_last(places.wrapper).second && !is_theirs) {
        if (link == Found::other) throw Failure(ExitStatus::configuration, problem_of_taken(parts.front()) + "; move it away");
        std::vector<const Part *> missing;
        for (const auto &part : parts)
            if (look_at_part(part) == Found::nothing) missing.push_back(&part);
        left.insert(name);
        if (!missing.empty())
            changes.make("make the command " + parts.front().path() + ", another name of " + places.wrapper, [&] {
                write_command_names(places, left); // first: what is made is known, whatever happens next
                for (const auto *part : missing)
                    make_part(*part);
                fault_point("command-named");
            });
    }
    for (const auto &old : noted) {
        if (old == name) continue;
        changes.make("remove the command " + parts_of(old, places).front().path(), [&] { remove_name(old, places); });
        left.erase(old);
    }
    if (!changes.dry_run() && left != read_command_names(places)) write_command_names(places, left);
}

std::string noted_command(const AsRoot & /*root*/, const CommandPlaces &places)
{
    const CommandNames noted = read_command_names(places);
    return noted.empty() ? split_last(places.wrapper).second : *noted.begin();
}

void remove_command(const AsRoot & /*root*/, const CommandPlaces &places, Changes &changes)
{
    const CommandNames noted = read_command_names(places);
    for (const auto &command : noted)
        changes.make("remove the command " + parts_of(command, places).front().path(), [&] { remove_name(command, places); });
    if (!changes.dry_run() && !noted.empty()) write_command_names(places, {});
}

std::vector<std::string> users_of(const Policy &policy)
{
    std::vector<std::string> names;
    std::set<std::string> known; // a policy may have a hundred thousand users
    const auto add = [&](const std::string &name) {
        if (known.insert(name).second) names.push_back(name);
    };
    for (const auto &entry : policy.users) {
        if (!entry.is_group) {
            add(entry.name);
            continue;
        }
        for (const auto &member : group_members(entry.name))
            add(member);
    }
    return names;
}

} // namespace pi_agent
