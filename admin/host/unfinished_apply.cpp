// Keeps what the host was until a change is finished, and takes back what a change did.
#include "admin/host/host_things.hpp"

#include "admin/programs/program.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>

#include <thread>

// Null where there is no value.
namespace nlohmann {
template <typename Value>
struct adl_serializer<std::optional<Value>> {
    static void to_json(json &to, const std::optional<Value> &value) { to = value ? json(*value) : json(nullptr); }
    static void from_json(const json &from, std::optional<Value> &value)
    {
        value = from.is_null() ? std::nullopt : std::optional(from.get<Value>());
    }
};
} // namespace nlohmann

namespace pi_agent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PolicyChange, before, wanted)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostBefore, command, group, state_dir, had_group, new_accounts, new_members, places, rule, hidden,
                                   state_note, command_name, policy)

// Takes back what a change did to the host: rule, rights, accounts, directories, each if nobody else has changed it since.

namespace {

constexpr mode_t for_others = 07;
constexpr int leftovers_patience_seconds = 5;

// The first file of that account in the state of the users: an account with files keeps its number, which nobody else must get.
std::string first_of_account(const std::string &state_dir, Uid uid)
{
    const auto users = if_there([&] { return open_trusted(state_dir + "/users", O_RDONLY | O_DIRECTORY, "state directory"); });
    if (!users) return "";
    for (const auto &user : names_in(users)) {
        struct stat kind {};
        if (::fstatat(users.get(), user.c_str(), &kind, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(kind.st_mode)) continue; // not pi-agent's
        const auto own = open_if_there("opening " + user, users, user, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (!own) continue;
        for (const auto &name : names_in(own)) {
            struct stat facts {};
            if (::fstatat(own.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
                require_gone("examining " + name);
                continue;
            }
            if (Uid(facts.st_uid) == uid) return state_dir + "/users/" + user + "/" + name;
        }
    }
    return "";
}

class GoingBack {
public:
    GoingBack(const AsRoot &root, const HostBefore &before, Changes &changes, std::ostream &warnings)
        : root_(root), before_(before), changes_(changes), warnings_(warnings)
    {
    }

    bool run()
    {
        step([this] { policy(); });
        step([this] { rule(); });
        for (const auto &[path, rights] : before_.places)
            if (rights) step([&, &place = path, &before = rights] { rights_of_place(place, *before); });
        step([this] { write_note(hidden_name, before_.hidden); });
        step([this] { state_place(); });
        step([this] { install_command(root_, before_.command_name, places_of_command(), changes_); });
        step([this] {
            for (const auto &[account, user] : made_agent_accounts())
                made_.emplace(account.name, account.uid);
        });
        for (const auto &name : before_.new_accounts)
            step([&] { account(name); });
        for (const auto &name : before_.new_members)
            step([&] { member(name); });
        step([this] { group(); });
        if (!all_) return false;
        step([this] { remove_unfinished_note(root_); });
        // Children first; in their order, parents come first.
        for (auto place = before_.places.rbegin(); place != before_.places.rend(); ++place)
            if (!place->second) step([&] { directory(place->first); });
        return all_;
    }

private:
    // What fails keeps nothing else from going back.
    void step(const std::function<void()> &task)
    {
        try {
            task();
        } catch (const std::exception &failure) {
            all_ = false;
            warnings_ << "pi-agentctl: warning: this could not be undone: " << failure.what() << '\n';
        }
    }

    void stays(const std::string &what) { warnings_ << "pi-agentctl: warning: " << what << '\n'; }

    void policy()
    {
        if (!before_.policy) return;
        const auto installed = read_policy_sources(policy_path);
        if (are_same(installed, before_.policy->before)) return;
        if (!is_between(installed, *before_.policy)) return stays("the policy's files stay as they are: somebody else has changed them");
        install_policy_files(root_, installed, before_.policy->before, changes_);
    }

    void rule()
    {
        if (build::is_system_managed || read_sudoers(root_, sudoers_directory) == before_.rule) return;
        changes_.make(before_.rule ? "put the former sudo rule back" : "take the sudo rule back: nobody can start pi",
                      [&] { put_back_sudoers(root_, sudoers_directory, before_.rule); });
    }

    // As apply leaves it: closed, and the agents' group's. Whoever has opened it since meant that. To close what was closed is always
    // right.
    [[nodiscard]] bool is_as_apply_left_it(const FormerRights &now, const FormerRights &former) const
    {
        const bool is_hidden = (now.mode & for_others) == 0 && is_agents_group(root_, now.gid, before_.group);
        return is_hidden || (former.mode & for_others) == 0;
    }

    void rights_of_place(const std::string &path, const FormerRights &former)
    {
        const auto place = if_there([&] { return open_trusted(path, O_RDONLY | O_NONBLOCK, "place that apply changed"); });
        if (!place) return;
        const struct stat facts = examine(place, "cannot examine " + path);
        const FormerRights now = rights_in(facts);
        if (now == former) return;
        const bool is_ours = is_within(path, before_.state_dir) || is_within(path, parent_of(applied_directory));
        if (!is_ours && !is_as_apply_left_it(now, former))
            return stays(escape_for_display(path) + " keeps its owner and mode: somebody else has changed them");
        changes_.make(
            fmt::format("give {} its owner and mode back ({}:{} {:04o})", escape_for_display(path), former.uid, former.gid, former.mode),
            [&] { give_rights(place, former, path); });
    }

    // Only a place without homes was left for another one, so none are lost from sight at the former place.
    void state_place()
    {
        if (read_note(state_note) == before_.state_note) return;
        const std::string path = before_.state_dir + "/users";
        const auto users = if_there([&] { return open_trusted(path, O_RDONLY | O_DIRECTORY, "state directory"); });
        if (users && !names_in(users).empty()) stays("homes that sessions made in " + path + " meanwhile stay there; look at them");
        write_note(state_note, before_.state_note);
    }

    void account(const std::string &name)
    {
        const auto found = made_.find(name);
        if (found == made_.end()) return;
        if (const auto file = first_of_account(before_.state_dir, found->second); !file.empty() && defence_is_on("undone-account-empty"))
            return stays("the account " + name + " stays, because " + escape_for_display(file) + " belongs to it");
        remove_agent_account(root_, name, changes_);
    }

    void member(const std::string &name)
    {
        const auto found = find_account(name);
        const auto agents = find_group(before_.group);
        if (!found || !agents || std::ranges::find(found->groups, agents->value()) == found->groups.end()) return;
        changes_.make("take " + name + " out of the group " + before_.group, [&] {
            require_success({"gpasswd", "-d", name, before_.group}, "cannot take " + name + " out of the group");
        });
    }

    void group()
    {
        if (before_.had_group || !find_group(before_.group)) return;
        for (const auto &name : before_.new_accounts)
            if (find_account(name)) return stays("the group " + before_.group + " stays, because " + name + " does");
        std::set<std::string> places = {parent_of(policy_path)};
        for (const auto &[path, rights] : before_.places)
            places.insert(path);
        require_nothing_of_group(places, before_.group);
        changes_.make("remove the group " + before_.group, [&] { remove_group(before_.group); });
    }

    void directory(const std::string &path)
    {
        const auto [above, name] = split_last(path);
        const auto holder = if_there([&, &parent = above] { return open_trusted(parent, O_RDONLY | O_DIRECTORY, "state directory"); });
        if (!holder || !has_name(holder, name, "cannot examine " + path)) return;
        for (const Deadline deadline = in_seconds(leftovers_patience_seconds); ::unlinkat(holder.get(), name.c_str(), AT_REMOVEDIR) != 0;) {
            if (errno != ENOTEMPTY && errno != EEXIST) throw_errno("cannot remove " + path);
            if (name != "sessions" || Clock::now() >= deadline) return;  // what is in it was not apply's
            std::this_thread::sleep_for(std::chrono::milliseconds(100)); // pi-agent-cleanup removes what the trial's session left
        }
        changes_.make("remove the directory " + path, [] {});
    }

    const AsRoot &root_;
    const HostBefore &before_;
    Changes &changes_;
    std::ostream &warnings_;
    std::map<std::string, Uid> made_; // accounts that are there
    bool all_ = true;
};

// --- Looks at the host before a change, and keeps what it was in a file until the change is finished.

std::optional<FormerRights> rights_of(const std::string &path)
{
    return if_there([&] {
        const auto place = open_trusted(path, O_PATH, "place that apply changes");
        return std::optional(rights_in(examine(place, "cannot examine " + path)));
    });
}

} // namespace

bool go_back(const AsRoot &root, const HostBefore &before, Changes &changes, std::ostream &warnings)
{
    return GoingBack(root, before, changes, warnings).run();
}

bool is_between(const PolicyFiles &installed, const PolicyChange &change)
{
    const auto has = [](const PolicyFiles &files, const PolicySource &one) {
        return std::ranges::any_of(files, [&](const PolicySource &other) { return other.name == one.name && other.text == one.text; });
    };
    return std::ranges::all_of(installed, [&](const PolicySource &file) { return has(change.before, file) || has(change.wanted, file); });
}

HostBefore look_at_host(const AsRoot &root, const Policy &policy)
{
    HostBefore before;
    before.group = policy.agent.group;
    before.state_dir = policy.agent.state_dir;
    const auto missing = find_missing(policy, needed_agent_accounts(policy));
    before.had_group = !missing.group;
    before.new_accounts = mapped(missing.accounts, [](const AgentAccount &account) { return account.name; });
    before.new_members = missing.members;
    // The directories that apply makes, parents first.
    const std::string applied = applied_directory;
    std::vector<std::string> paths = {policy.agent.state_dir, policy.agent.state_dir + "/users", policy.agent.state_dir + "/sessions"};
    if (parent_of(applied) != policy.agent.state_dir) paths.push_back(parent_of(applied));
    paths.push_back(applied);
    for (const auto &path : paths)
        before.places[path] = rights_of(path);
    auto programs = places_of_agent(root, policy);
    for (const auto &[path, rights] : read_hidden_places(root))
        programs.insert(path);
    for (const auto &path : programs)
        try {
            if (const auto rights = rights_of(path)) before.places[path] = rights;
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): others can change the way there, so apply changes nothing there
        }
    if (!build::is_system_managed) before.rule = read_sudoers(root, sudoers_directory);
    before.hidden = read_note(hidden_name);
    before.state_note = read_note(state_note);
    before.command_name = noted_command(root, places_of_command());
    return before;
}

HostBefore joined(HostBefore earlier, const HostBefore &now)
{
    // What the earlier command made exists by now, and is not among what is missing now.
    const auto add = [](std::vector<std::string> &names, const std::vector<std::string> &more) {
        for (const auto &name : more)
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    if (earlier.group == now.group) {
        earlier.had_group = earlier.had_group && now.had_group;
        add(earlier.new_members, now.new_members);
    } else { // the earlier one stays, with its members: whoever made it may mean something else by now
        earlier.had_group = now.had_group;
        earlier.new_members = now.new_members;
    }
    add(earlier.new_accounts, now.new_accounts);
    earlier.places.insert(now.places.begin(), now.places.end());
    earlier.group = now.group;
    earlier.state_dir = now.state_dir;
    earlier.command = now.command;
    if (!earlier.policy) earlier.policy = now.policy;
    if (earlier.policy && now.policy) earlier.policy->wanted = now.policy->wanted;
    return earlier;
}

std::string to_text(const HostBefore &before)
{
    nlohmann::json json = before;
    json["version"] = 1;
    try {
        return json.dump(1) + "\n";
    } catch (const nlohmann::json::type_error &) { // of bytes that are not UTF-8: pi-agent writes none
        throw Failure(ExitStatus::configuration, std::string("the sudo rule ") + sudoers_directory +
                                                     "/pi-agent is not text any more; remove it, and run the command again");
    }
}

HostBefore host_before_of(const std::string &text)
{
    HostBefore before;
    parse_note(unfinished_apply_name, text, "; remove it, and 'sudo pi-agentctl apply' makes the host follow the policy",
               NoteVersion::first, [&](const nlohmann::json &json) { json.get_to(before); });
    return before;
}

std::optional<HostBefore> read_unfinished(const AsRoot & /*root*/)
{
    const auto text = read_note(unfinished_apply_name);
    return text ? std::optional(host_before_of(*text)) : std::nullopt;
}

void write_unfinished(const AsRoot & /*root*/, const HostBefore &before)
{
    write_note(unfinished_apply_name, to_text(before));
}

void remove_unfinished_note(const AsRoot & /*root*/)
{
    write_note(unfinished_apply_name, std::nullopt);
}

} // namespace pi_agent
