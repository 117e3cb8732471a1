// Joins the entries of the policy that apply to a caller, and decides by them alone.
#include "common/decide/decision.hpp"

#include "common/policy/policy_sections.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

namespace pi_agent {

// Joins what groups say, and lays the user's own entry over it.

CallersEntries find_entries(const Policy &policy, const Account &caller)
{
    CallersEntries entries;
    for (const auto &entry : policy.users)
        if (!entry.is_group && entry.name == caller.name) entries.own = &entry;
    for (const auto &entry : policy.users) {
        if (!entry.is_group || (entries.own != nullptr && !entry.rules && entry.env.empty())) continue; // a look-up may be slow
        const auto group = find_group(entry.name);
        if (group && std::find(caller.groups.begin(), caller.groups.end(), group->value()) != caller.groups.end())
            entries.groups.push_back({&entry, *group});
    }
    return entries;
}

namespace {

// What the entries of one caller say together for sessions. What two groups set differently has no right answer, unless the caller's own
// entry says it.
class GroupJoin {
public:
    GroupJoin(std::string caller, const UserEntry *own, AccessRules &joined) : caller_(std::move(caller)), own_(own), joined_(joined) {}

    void take(const UserEntry &entry, const std::optional<std::string> &value, const char *name, std::optional<std::string> &into)
    {
        if (!value) return;
        if (into && *into != *value) report(entry, name);
        into = value;
    }

    void take_rules(const UserEntry &entry)
    {
        const Documents before = joined_.rules.documents;
        const Rules &other = rules_of(entry.rules);
        for (const auto &key : join(joined_.rules, other))
            if (own_ == nullptr || !settles(rules_of(own_->rules), key, before, other.documents)) report(entry, key);
        for (const auto &[name, value] : entry.env) {
            const auto [present, is_new] = joined_.env.emplace(name, value);
            if (is_new) joined_.env_where[name] = entry.env_where.at(name);
            if (!is_new && present->second != value && (own_ == nullptr || !own_->env.contains(name))) report(entry, "env." + name);
        }
    }

    // Lays the caller's own entry over what the groups say. Throws PolicyError with all contradictions. Call it once.
    void finish()
    {
        problems_.throw_if_any();
        if (own_ == nullptr) return;
        lay_over(joined_.rules, rules_of(own_->rules));
        for (const auto &[name, value] : own_->env) {
            joined_.env[name] = value;
            joined_.env_where[name] = own_->env_where.at(name);
        }
    }

private:
    void report(const UserEntry &entry, const std::string &name)
    {
        problems_.add(entry.where, entry_key(entry) + "." + name, "another group of " + caller_ + " sets another value",
                      "give " + caller_ + " an entry under users, or set the same value in both");
    }

    std::string caller_;
    const UserEntry *own_;
    AccessRules &joined_;
    Problems problems_;
};

std::string refusal_text(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots, const std::string &cwd)
{
    std::string text = "denied: " + escape_for_display(cwd) + " is outside the project roots of " + caller.name + " (" +
                       to_string(rules.where) + ", " + rules.entry + ".roots):";
    if (roots.empty()) text += " none of these directories can be used";
    for (const auto &root : roots)
        text += " " + escape_for_display(root.path);
    if (roots.empty()) return text + "; ask the administrator";
    text += "; cd to one of them, or ask the administrator to add this directory";
    if (rules.absent.empty()) return text;
    text += rules.absent.size() == 1 ? "; this root does not exist:" : "; these roots do not exist:";
    for (const auto &name : rules.absent)
        text += " " + quote(name);
    return text;
}

constexpr const char *default_config = ".pi/agent";

// Why `caller` can never be a user, whatever entry would fit.
std::optional<std::string> problem_of_caller(const Policy &policy, const Account &caller)
{
    const auto name = quote(caller.name);
    if (caller.uid == Uid(0)) return "root cannot run the agent; run pi as a user whom the policy authorises";
    if (!is_account_name(caller.name) && defence_is_on("plain-callers"))
        return "the account name " + name +
               " cannot be used; it may hold letters, digits, spaces and _ - . @ + ' \\, begins with a letter, a digit or '_', and is not "
               "a number";
    // Accounts that apply made have this home, whatever they are called.
    const bool is_made = caller.home == default_state_dir && defence_is_on("agents-by-home");
    if (is_made || is_agent_account(policy, caller.name))
        return "the account " + name + " is an agent's own, and pi cannot start inside a session";
    return std::nullopt;
}

std::string from_home(const std::string &path, const Account &caller)
{
    if (path.front() == '/') return path;
    return caller.home + (caller.home.back() == '/' ? "" : "/") + path;
}

// In this order: root by another name; root by asking a service; raw devices, terminals, keyboard and screen, microphone, what is plugged
// in; the host's network and radios, by their services or by capturing packets; logs and secrets; private keys; the print service's
// configuration, which root follows; /usr/local, which lies on root's own PATH. docs/reference/policy-files.md says the same.
constexpr std::string_view privileged_names =
    "root sudo wheel admin docker podman lxd incus incus-admin libvirt libvirt-qemu kvm microk8s disk kmem tty input video audio tape "
    "cdrom floppy dialout plugdev vboxusers netdev bluetooth wireshark adm systemd-journal utmp shadow ssl-cert lpadmin staff";

// Only the numbers that the host gives to these names: two names may share one. Asked once, because a directory service is slow.
const std::vector<Gid> &privileged_gids()
{
    static const std::vector<Gid> gids = [] {
        std::vector<Gid> found = {Gid(0)};
        for (const auto name : split(privileged_names, ' '))
            if (const auto gid = find_group(std::string(name))) found.push_back(*gid);
        return found;
    }();
    return gids;
}

} // namespace

bool has_jobs(const Policy &policy) noexcept
{
    return policy.placement.engine == PlacementEngine::slurm;
}

// Whether a user may work here, by the policy alone, and on what grounds.

std::variant<Allowed, Refused> decide(const Account &caller, const AccessRules &rules, const std::vector<RootCandidate> &roots,
                                      const std::string &cwd)
{
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < roots.size(); ++index) {
        if (!is_within(cwd, roots[index].path)) continue;
        if (!best || roots[index].path.size() > roots[*best].path.size()) best = index;
    }
    if (!best) return Refused{refusal_text(caller, rules, roots, cwd)};
    const std::string &root = roots[*best].path;
    for (const auto &other : roots)
        if (other.path == root && !say_the_same(other.rules, roots[*best].rules))
            return Refused{"denied: the policy grants " + escape_for_display(root) + " twice, with different rules (" +
                           to_string(roots[*best].where) + ", " + to_string(other.where) +
                           "), and nobody can say which hold; ask the administrator to say them once"};
    return Allowed{*best, cwd.size() > root.size() ? cwd.substr(root.size() + 1) : std::string()};
}

const PolicyPath *mask_over(const std::vector<PolicyPath> &mask, const std::string &path)
{
    std::string part;
    for (const auto name : split(path, '/')) {
        if (name == ".git") return nullptr;
        part += (part.empty() ? "" : "/") + std::string(name);
        const auto found = std::find_if(mask.begin(), mask.end(), [&](const PolicyPath &one) { return is_masked_by(one.path, part); });
        if (found != mask.end()) return &*found;
    }
    return nullptr;
}

std::optional<Refused> masked_start(const ProjectsPolicy &projects, const std::string &top, const std::string &cwd)
{
    if (cwd.size() <= top.size() || !defence_is_on("masked-starts")) return std::nullopt;
    const PolicyPath *mask = mask_over(projects.mask, cwd.substr(top.size() + 1));
    if (mask == nullptr) return std::nullopt;
    return Refused{"denied: " + escape_for_display(cwd) + " is in what the policy masks in " + escape_for_display(top) +
                   " (projects.mask: " + quote(mask->path) + ", " + to_string(mask->where) +
                   "), so no session can work there; cd to another directory, or ask the administrator"};
}

std::string find_agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as,
                                    std::optional<Uid> uid)
{
    std::string named = agent_account_name(policy, user, run_as);
    const bool is_somebodys = policy.people.contains(named);
    if (run_as || policy.agent.accounts == Accounts::shared || (can_be_created(named) && !is_somebodys)) return named;
    if (is_plain_name(named) && !is_somebodys && find_account(named)) return named;
    const auto account = uid ? std::nullopt : find_account(user);
    if (account) uid = account->uid;
    return uid ? policy.agent.user + "-" + std::to_string(uid->value()) : named;
}

std::variant<AccessRules, NotAuthorised> find_access_rules(const Policy &policy, const Account &caller, const std::string &policy_file)
{
    if (const auto problem = problem_of_caller(policy, caller)) return NotAuthorised{*problem};
    return rules_by(policy, caller, find_entries(policy, caller), policy_file);
}

std::variant<AccessRules, NotAuthorised> rules_by(const Policy &policy, const Account &caller, const CallersEntries &entries,
                                                  const std::string &policy_file)
{
    if (entries.own == nullptr && entries.groups.empty()) {
        return NotAuthorised{"the policy " + policy_file + " does not authorise " + caller.name + ": it has no entry users." + caller.name +
                             " and no entry for a group of this account; ask the administrator to add one"};
    }
    std::optional<std::string> config;
    std::optional<std::string> run_as;
    std::optional<std::string> ssh_key;
    std::optional<std::string> signing_key;
    AccessRules rules;
    GroupJoin groups(caller.name, entries.own, rules);
    rules.where = (entries.own != nullptr ? entries.own : entries.groups.front().entry)->where;
    const auto take = [&](const UserEntry &entry, std::optional<Gid> group) {
        rules.entry += (rules.entry.empty() ? "" : ", ") + entry_key(entry);
        for (const auto &root : entry.roots)
            rules.roots.push_back({root, group});
        groups.take(entry, entry.config, "config", config);
        groups.take(entry, entry.run_as, "run_as", run_as);
        groups.take(entry, entry.ssh_key, "ssh.key", ssh_key);
        groups.take(entry, entry.signing_key, "signing.key", signing_key);
    };
    if (entries.own != nullptr) take(*entries.own, std::nullopt);
    for (const auto &[entry, group] : entries.groups) {
        if (entries.own == nullptr) take(*entry, group);
        groups.take_rules(*entry);
    }
    groups.finish();
    const bool at_own_path = rules.rules.paths.value_or(policy.projects.paths) == ProjectPaths::host;
    for (auto &root : rules.roots)
        root.spec.at_own_path = at_own_path;
    rules.config_directory = from_home(config.value_or(default_config), caller);
    if (ssh_key) rules.ssh_key = from_home(*ssh_key, caller);
    if (signing_key) rules.signing_key = from_home(*signing_key, caller);
    rules.agent_account = find_agent_account_name(policy, caller.name, run_as, caller.uid);
    if (!is_plain_name(rules.agent_account)) {
        return NotAuthorised{"the agent's account of " + caller.name + " would be called " + quote(rules.agent_account) +
                             ", which is longer than 32 characters; ask the administrator to give " + caller.name +
                             " an entry with run_as in " + policy_file};
    }
    return rules;
}

AccessRules with_roots_there(AccessRules rules, const std::vector<bool> &there)
{
    std::vector<GrantedRoot> roots;
    for (std::size_t index = 0; index < rules.roots.size(); ++index) {
        if (there.at(index))
            roots.push_back(std::move(rules.roots[index]));
        else
            rules.absent.push_back(std::move(rules.roots[index].spec.text));
    }
    rules.roots = std::move(roots);
    return rules;
}

bool is_privileged_group(std::string_view name)
{
    return has_word(privileged_names, name);
}

bool is_privileged_group(Gid gid)
{
    if (!defence_is_on("privileged-groups")) return false;
    const auto &gids = privileged_gids();
    return std::find(gids.begin(), gids.end(), gid) != gids.end();
}

std::vector<std::string> forbidden_groups_of(const Policy &policy, const Account &agent)
{
    std::vector<std::string> found;
    for (const gid_t number : agent.groups) {
        const Gid gid(number);
        const bool authorised = defence_is_on("agents-groups") &&
                                std::any_of(policy.users.begin(), policy.users.end(),
                                            [&](const UserEntry &entry) { return entry.is_group && find_group(entry.name) == gid; });
        if (authorised || is_privileged_group(gid)) found.push_back(group_name(gid).value_or(std::to_string(number)));
    }
    return found;
}

} // namespace pi_agent
