// Joins the entries of the policy that apply to a caller, decides by them alone, and says what holds for a start.
#include "common/decide/decision.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
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
    return path.front() == '/' ? path : caller.home + (caller.home.back() == '/' ? "" : "/") + path;
}

Policy laid_over(Policy outer, const Rules &inner)
{
    if (inner.places.empty()) return outer;
    Problems problems;
    lay_over(outer, inner, problems);
    problems.throw_if_any();
    return outer;
}

// Of two ranges that share an address, one holds the other.
std::vector<IpRange> in_both(const std::vector<IpRange> &some, const std::vector<IpRange> &others)
{
    std::vector<IpRange> both;
    for (const auto &one : some)
        for (const auto &other : others)
            if (overlap(one, other)) both.push_back(one.prefix > other.prefix ? one : other);
    return both;
}

NetworkPolicy without_all_but_loopback(const Policy &policy, const std::string &option)
{
    const auto &network = policy.network;
    const auto refuse_without = [&](const char *what) {
        throw Failure(FailureKind::start_asks, "denied: " + option + " asks for more than the policy gives: its network (" +
                                                   to_string(network.where) + ") " + what + "; leave the option out, or say none");
    };
    if (network.mode == NetworkMode::loopback) return network;
    if (network.mode == NetworkMode::hosts) {
        NetworkPolicy left{NetworkMode::hosts, {}, {option}};
        std::copy_if(network.hosts.begin(), network.hosts.end(), std::back_inserter(left.hosts), is_loopback);
        left.reaches_providers = false; // they are elsewhere
        if (left.hosts.empty()) refuse_without("names no host on loopback");
        return left;
    }
    if (network.mode == NetworkMode::full && policy.sandbox.method == SandboxMethod::bwrap)
        throw Failure(FailureKind::network_not_enforced,
                      option + ": the sandbox method bwrap cannot filter addresses; say --pi-agent-network=none");
    NetworkPolicy left{network.mode == NetworkMode::full ? NetworkMode::loopback : NetworkMode::listed, loopback_ranges(), {option}};
    if (network.mode != NetworkMode::full) left.allowed = in_both(network.allowed, loopback_ranges());
    if (left.allowed.empty()) refuse_without("allows no loopback");
    return left;
}

std::string place_of(const NetworkPolicy &network)
{
    return network.where.file.empty() ? "full, the default" : to_string(network.where);
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
    if (const auto account = uid ? std::nullopt : find_account(user); account) uid = account->uid;
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
    if (entries.own == nullptr && entries.groups.empty())
        return NotAuthorised{"the policy " + policy_file + " does not authorise " + caller.name + ": it has no entry users." + caller.name +
                             " and no entry for a group of this account; ask the administrator to add one"};
    std::optional<std::string> config, run_as, ssh_key, signing_key;
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
    if (!is_plain_name(rules.agent_account))
        return NotAuthorised{"the agent's account of " + caller.name + " would be called " + quote(rules.agent_account) +
                             ", which is longer than 32 characters; ask the administrator to give " + caller.name +
                             " an entry with run_as in " + policy_file};
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

// --- What holds for one session, and whether a start of it would be: lays one level over the other.

Policy policy_for(Policy policy, const AccessRules &access)
{
    return laid_over(std::move(policy), access.rules);
}

Policy policy_in(Policy callers, const RootSpec &root)
{
    Policy policy = laid_over(std::move(callers), rules_of(root.rules));
    if (const auto problem = problem_of_providers(policy.network, policy.providers, policy.rules)) throw PolicyError({*problem});
    // No list of the policy is as long, but those of several groups can be together.
    if (const auto &network = policy.network; network.hosts.size() > most_host_rules)
        throw PolicyError(
            {Diagnostic{network.where, place_of_key(policy.rules, "network"),
                        fmt::format("the lists of the groups here have {} rules together, and a session has {} at most",
                                    network.hosts.size(), most_host_rules),
                        "use a wildcard where names have the same end, or give one list to these users in entries of their own"}});
    return policy;
}

Policy granted(Policy policy, const std::vector<std::string> &hosts)
{
    auto &network = policy.network;
    for (const auto &text : hosts) {
        const std::string asked = "denied: --pi-agent-allow " + escape_for_display(text);
        auto parsed = parse_host_rule(text);
        if (const auto *problem = std::get_if<TextProblem>(&parsed))
            throw Failure(FailureKind::start_asks, asked + " " + problem->text + "; " + problem->remedy);
        auto rule = std::get<HostRule>(std::move(parsed));
        if (network.mode != NetworkMode::hosts)
            throw Failure(FailureKind::start_asks,
                          asked + " has no meaning here: the network of this session (" + place_of(network) + ") is not a list of hosts");
        if (rule_for(network.hosts, rule) != nullptr) continue;
        if (rule_for(network.may_grant, rule) == nullptr && defence_is_on("granted-hosts"))
            throw Failure(FailureKind::start_asks,
                          asked + " is not among what the policy lets you add (" + place_of(network) + ", may_grant: " +
                              (network.may_grant.empty()
                                   ? "nothing"
                                   : joined(network.may_grant, ", ", [](const HostRule &grant) { return to_string(grant); })) +
                              "); ask the administrator");
        rule.where = {"--pi-agent-allow"};
        network.hosts.push_back(std::move(rule));
    }
    if (network.hosts.size() > most_host_rules)
        throw Failure(FailureKind::start_asks,
                      fmt::format("denied: this session would have {} rules with hosts, and the most is {}; say fewer "
                                  "times --pi-agent-allow, or ask the administrator",
                                  network.hosts.size(), most_host_rules));
    return policy;
}

Policy narrowed(Policy policy, const Narrowing &start)
{
    if (start.network == LeftNetwork::none && policy.network.mode != NetworkMode::none)
        policy.network = {NetworkMode::none, {}, {"--pi-agent-network=none"}};
    if (start.network == LeftNetwork::loopback) policy.network = without_all_but_loopback(policy, "--pi-agent-network=loopback");
    if (start.read_only) policy.projects.read_only = true;
    if (start.project_only) policy.projects.repository_alone = policy.projects.scope == ProjectScope::root;
    return policy;
}

// --- The steps of the decision, in the order of a start.

void require_harmless_grant(const Account &caller, const std::string &root, std::optional<Gid> by_group)
{
    if (by_group && is_privileged_group(*by_group))
        throw Failure(FailureKind::user_root, "the root " + escape_for_display(root) +
                                                  " is granted by a group whose members control the host (root, sudo, docker, …); ask "
                                                  "the administrator to grant it to users, or to another group");
    if (caller.gid.value() == 0)
        throw Failure(FailureKind::caller, "denied: the primary group of " + escape_for_display(caller.name) +
                                               " is root's group, and the agent's files would belong to it; ask the administrator to give "
                                               "that account another primary group");
}

// The kernel reports the path, after the reader opened the root. A rename in between can change it, so it is judged here as well. The unit
// names only the root, and only at its own path. Below the host's own trees, which the agent sees, systemd resolves that path again while
// the session runs, and only root may be able to exchange a component there (a symlink there once made root run the project's own program).
void require_place_of_root(const RootCandidate &root, const AccessRules &rules, ProjectPaths paths, const IsShown &is_shown)
{
    const auto refuse = [&](const std::string &problem, const std::string &remedy) {
        throw PolicyError(
            {Diagnostic{root.where, rules.entry + ".roots", "the root leads to " + escape_for_display(root.path) + ", " + problem, remedy}},
            FailureKind::user_root);
    };
    if (const auto problem = problem_of_root_in_unit(root.path); problem && paths == ProjectPaths::host && defence_is_on("root-alphabet"))
        refuse("which " + problem->text, problem->remedy);
    if (!defence_is_on("root-place")) return;
    if (const auto problem = problem_of_place(root.path)) refuse("which " + problem->text, problem->remedy);
    // Every root of a policy knows where its state is, and this is one of them.
    if (const auto &state_dir = rules.roots.front().spec.state_dir; !state_dir.empty())
        if (const auto problem = problem_beside_state(root.path, state_dir)) refuse("which " + problem->text, problem->remedy);
    if (paths == ProjectPaths::alias || !is_shown || !is_shown(root.path)) return; // under an alias, the unit does not name it
    try {
        open_trusted(root.path.substr(0, root.path.rfind('/')), O_PATH | O_DIRECTORY, "directory that holds a root");
    } catch (const Failure &failure) {
        refuse(std::string("which others could replace while a session runs: ") + failure.what(), "move it below /srv or a home");
    }
}

std::variant<Start, Refused> decide_start(const Account &caller, const AccessRules &rules, Policy callers, const StartPlaces &places,
                                          const AskedOfStart &asked, const IsShown &is_shown)
{
    auto decision = decide(caller, rules, places.roots, places.cwd);
    if (auto *refused = std::get_if<Refused>(&decision)) return *refused;
    auto &allowed = std::get<Allowed>(decision);
    const RootCandidate &root = places.roots[allowed.root];
    Start start{allowed.root, std::move(allowed.below), std::move(callers)};
    if (defence_is_on("root-rules")) start.policy = policy_in(std::move(start.policy), rules.roots[start.root].spec);
    start.policy = granted(std::move(start.policy), asked.allow);
    if (defence_is_on("narrowed-starts")) start.policy = narrowed(std::move(start.policy), asked.narrowing);
    if (asked.ports) require_ports(start.policy);
    if (root.mount != places.mount && defence_is_on("cwd-mount"))
        return Refused{"denied: " + escape_for_display(places.cwd) + " lies on another file system, mounted inside the root " +
                       escape_for_display(root.path) +
                       ", which the agent does not see; ask the administrator to make it a root of its own"};
    require_place_of_root(root, rules, start.policy.projects.paths, is_shown);
    if (const auto refused = masked_start(start.policy.projects, root.path, places.cwd)) throw Failure(FailureKind::masked, refused->text);
    return start;
}

AgentPlaces places_of_state(const Policy &policy, const AccessRules &rules, const std::vector<AgentPlace> &roots)
{
    AgentPlaces places{roots, policy.projects.shown(), policy.projects.mask};
    for (const auto &granted : rules.roots) {
        const Rules &own = rules_of(granted.spec.rules);
        if (own.scope == ProjectScope::project) places.scope = ProjectScope::project;
        if (own.mask) places.masks.insert(places.masks.end(), own.mask->begin(), own.mask->end());
    }
    struct stat facts {};
    if (stat(policy.agent.state_dir.c_str(), &facts) == 0)
        places.places.push_back({policy.agent.state_dir, facts.st_dev, facts.st_ino});
    else
        require_gone("examining " + policy.agent.state_dir); // no agent has written yet
    return places;
}

} // namespace pi_agent
