// Merges the rules of levels, gives a policy the values of the merged ones, and checks what all of it says together.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Json = nlohmann::json;

void take_place(Rules &rules, const Rules &from, const std::string &key)
{
    if (const auto place = from.places.find(key); place != from.places.end()) rules.places[key] = place->second;
}

// For a value of which both say a part.
void add_place(Rules &rules, const Rules &other, const std::string &key)
{
    const auto more = other.places.find(key);
    if (more == other.places.end()) return;
    const auto [place, is_new] = rules.places.emplace(key, more->second);
    if (!is_new) place->second.also.push_back(more->second);
}

// The same, where the part of `inner` wins.
void put_place_before(Rules &outer, const Rules &inner, const std::string &key)
{
    const auto place = inner.places.find(key);
    if (place == inner.places.end()) return;
    SaidAt said = place->second;
    if (const auto around = outer.places.find(key); around != outer.places.end()) {
        said.also.push_back({around->second.where, around->second.key});
        said.also.insert(said.also.end(), around->second.also.begin(), around->second.also.end());
    }
    outer.places[key] = std::move(said);
}

Json merged(Json outer, const Json &inner)
{
    if (!outer.is_object() || !inner.is_object()) return inner;
    for (const auto &[key, value] : inner.items()) {
        const auto found = outer.find(key);
        outer[key] = found == outer.end() ? value : merged(*found, value);
    }
    return outer;
}

// Whether two groups say the same wherever both say something.
bool agree(const Json &one, const Json &other)
{
    if (!one.is_object() || !other.is_object()) return one == other;
    return std::all_of(one.items().begin(), one.items().end(), [&](const auto &item) {
        const auto found = other.find(item.key());
        return found == other.end() || agree(item.value(), *found);
    });
}

// --- What both of two groups say.

template <typename Item>
void add_missing(std::vector<Item> &items, const std::vector<Item> &others)
{
    for (const auto &other : others)
        if (std::find(items.begin(), items.end(), other) == items.end()) items.push_back(other);
}

bool add(std::vector<PolicyPath> &paths, const std::vector<PolicyPath> &others)
{
    add_missing(paths, others);
    return true;
}

bool add(HomeDirectories &directories, const HomeDirectories &others)
{
    add_missing(directories.paths, others.paths);
    directories.best_effort = directories.best_effort || others.best_effort;
    return true;
}

// "What git executes" and a list of paths are not two lists.
bool add(Protection &protection, const Protection &other)
{
    return protection && other ? add(*protection, *other) : protection.has_value() == other.has_value();
}

// A group that may reach some addresses or hosts, and another that may reach others.
bool add(NetworkPolicy &network, const NetworkPolicy &other)
{
    if (network.mode != other.mode || network.via != other.via || network.via_login_file != other.via_login_file) return false;
    add_missing(network.direct, other.direct);
    add_missing(network.hosts, other.hosts);
    add_missing(network.may_grant, other.may_grant);
    if (network.mode == NetworkMode::listed) add_missing(network.allowed, other.allowed);
    return true;
}

// The providers of both. Of one provider there is one key.
bool add(std::vector<ProviderRule> &providers, const std::vector<ProviderRule> &others)
{
    bool agree = true;
    for (const auto &other : others) {
        const auto known =
            std::find_if(providers.begin(), providers.end(), [&](const ProviderRule &one) { return one.name == other.name; });
        if (known == providers.end())
            providers.push_back(other);
        else
            agree = agree && *known == other;
    }
    return agree;
}

template <typename Value>
bool add(Value &value, const Value &other)
{
    return value == other;
}

void take_values(Policy &policy, const Rules &rules)
{
    const auto take = [](auto &into, const auto &said) {
        if (said) into = *said;
    };
    take(policy.network, rules.network);
    take(policy.providers, rules.providers);
    policy.limits = rules.limits;
    policy.placement = rules.placement;
    take(policy.projects.paths, rules.paths);
    take(policy.projects.scope, rules.scope);
    take(policy.projects.ownership, rules.ownership);
    take(policy.projects.protect, rules.protect);
    policy.projects.mask = rules.mask.value_or(std::vector<PolicyPath>());
    take(policy.projects.aftermath, rules.aftermath);
    take(policy.projects.undo, rules.undo);
    take(policy.projects.read_only, rules.read_only);
    take(policy.wrapper.ports, rules.ports);
    policy.documents = rules.documents;
    take(policy.settings_lock, rules.settings_lock);
    take(policy.mcp_lock, rules.mcp_lock);
    if (policy.mcp_lock) policy.projects.mask.push_back({"**/.pi/mcp.json", policy.rules.places["mcp_lock"].where}); // a project's servers
    take(policy.env_files, rules.env_files);
    take(policy.view_paths, rules.view_paths);
    take(policy.path, rules.path);
    take(policy.devices, rules.devices);
    take(policy.scratch, rules.scratch);
}

bool several_users_possible(const Policy &policy, const UserFiles &files) noexcept
{
    return files.are_possible || policy.users.size() > 1 ||
           std::any_of(policy.users.begin(), policy.users.end(), [](const UserEntry &entry) { return entry.is_group; });
}

void check_accounts_said(const Policy &policy, const UserFiles &files, Problems &problems)
{
    if (policy.agent.accounts != Accounts::unspecified || !several_users_possible(policy, files)) return;
    if (problems.has("agent") || problems.has("agent.accounts")) return; // the policy says it, in a form that was not understood
    const char *why = several_users_possible(policy, {}) ? "" : " in users.d";
    problems.add(policy.agent.where, "agent.accounts", std::string("missing, and more than one user is possible") + why,
                 "say 'per-user' (an agent account each), or 'shared' (one for all: their agents can reach each other's state)");
}

void check_roots_fit_unit(const Policy &policy, Problems &problems)
{
    for (const auto &entry : policy.users)
        for (const auto &root : entry.roots)
            if (const auto problem = problem_of_root_in_unit(with_users_name(root.text, "user")); problem && root.at_own_path)
                problems.add(root.where, root_key(entry, root), quote(root.text) + " " + problem->text, problem->remedy);
}

// The runner holds the real paths against each other again (common/as_user/user_paths.hpp, runner/root/view/root_tree.hpp).
void check_apart_from_state(const Policy &policy, Problems &problems)
{
    const auto &state_dir = policy.agent.state_dir;
    if (state_dir == default_state_dir || problems.has_within("agent")) return; // no path of a policy may name the default
    const auto check = [&](const PolicyPath &path, const std::string &key) {
        if (const auto problem = problem_beside_state(path.path, state_dir))
            problems.add(path.where, key, quote(path.path) + " " + problem->text, problem->remedy);
    };
    const auto check_level = [&](const Rules &rules, const std::string &whose) {
        for (const auto &path : rules.view_paths.value_or(std::vector<PolicyPath>()))
            check(path, whose + "view_paths");
        for (const auto &path : rules.path.value_or(std::vector<PolicyPath>()))
            check(path, whose + "path");
    };
    for (const auto &entry : policy.users) {
        for (const auto &root : entry.roots)
            check({root.text, root.where}, root_key(entry, root));
        if (entry.rules) check_level(*entry.rules, entry_key(entry) + ".");
    }
    check_level(policy.rules, "");
    check({parent_of(policy.agent.binary), policy.agent.binary_where}, "agent.binary");
}

void check_image(const Policy &policy, Problems &problems)
{
    if (problems.has("sandbox.method")) return; // what the image is for is not known
    const bool is_docker = policy.sandbox.method == SandboxMethod::docker;
    const bool takes_one = is_docker || policy.sandbox.method == SandboxMethod::podman;
    const bool is_named = policy.sandbox.image_where.line > 0;
    if (is_docker && !is_named)
        problems.add(policy.sandbox.where, "sandbox.image", "is missing, and the method docker makes no container without one",
                     "name an image that is on this host");
    if (!takes_one && is_named)
        problems.add(policy.sandbox.image_where, "sandbox.image",
                     std::string("is for the methods docker and podman, and the method is ") + to_string(policy.sandbox.method),
                     "remove the key, or choose one of these methods");
}

// Under the method none nobody filters calls.
void refuse_calls_without_filter(const Policy &policy, Problems &problems)
{
    if (policy.sandbox.method != SandboxMethod::none || problems.has("sandbox.method")) return;
    const auto &calls = policy.calls;
    for (const auto &[key, list] : {std::pair("hardening.deny_system_calls", &calls.denied),
                                    {"hardening.allow_system_calls", &calls.allowed},
                                    {"hardening.address_families", &calls.families}})
        if (!list->empty())
            problems.add(list->front().where, key,
                         "sandbox.method none (" + to_string(policy.sandbox.where) + ") filters no system calls of a session",
                         "remove the key, or use another method");
}

// Two roots of one entry for one directory, of which one has rules: a start could not say which hold.
void check_roots_differ(const UserEntry &entry, Problems &problems)
{
    std::map<std::string, const RootSpec *> known;
    for (const auto &root : entry.roots) {
        const auto [other, is_new] = known.emplace(root.text, &root);
        if (!is_new && !say_the_same(root.rules, other->second->rules))
            problems.add(root.where, root_key(entry, root),
                         quote(root.text) + " is named twice, first at " + to_string(other->second->where) + ", with different rules",
                         "keep one of them");
    }
}

// What the levels of one entry say together.
void check_levels(const Policy &policy, const UserEntry &entry, Problems &problems)
{
    check_roots_differ(entry, problems);
    if (!entry.rules || (!entry.rules->readable && !entry.rules->caches && !entry.rules->own_readable)) return;
    Rules together = policy.rules;
    lay_over(together, *entry.rules);
    settle_toolchains(together, problems);
}

class AccountRules {
public:
    AccountRules(const Policy &policy, const UserFiles &files, Problems &problems) : policy_(policy), files_(files), problems_(problems)
    {
        for (const auto &entry : policy.users) {
            if (!entry.is_group) users_.emplace(entry.name, &entry);
            if (entry.run_as) run_as_.insert(*entry.run_as);
        }
    }

    // The agent must be nobody who can start it, or the isolation would end at its own account.
    void check_account_is_nobodys(const std::string &account, const Position &where, const std::string &key)
    {
        if (account == "root") problems_.add(where, key, "the agent's account cannot be root", "name an account of its own");
        if (const auto user = users_.find(account); user != users_.end())
            problems_.add(where, key,
                          "the agent's account " + quote(account) + " is a user of this policy (" + to_string(user->second->where) + ")",
                          "name an account of its own");
    }

    void check_entry(const UserEntry &entry)
    {
        const auto key = entry_key(entry);
        if (!entry.is_group && entry.name == "root")
            problems_.add(entry.where, key, "root cannot be a user of pi", "name the account that works with it");
        if (entry.run_as) check_account_is_nobodys(*entry.run_as, entry.run_as_where, key + ".run_as");
        if (policy_.agent.accounts != Accounts::per_user) return;
        if (!entry.is_group)
            check_own_account(entry, key);
        else if (entry.run_as)
            problems_.add(entry.run_as_where, key + ".run_as", "one account for all members of a group, but agent.accounts is 'per-user'",
                          "remove run_as, or say 'shared'");
    }

private:
    void check_own_account(const UserEntry &entry, const std::string &key)
    {
        if (!is_account_name(entry.name)) return; // already reported; its consequences are not another mistake
        // As is_agent_account (common/policy/policy.hpp), which looks at each entry: so a policy of many would take for ever.
        if (has_agents_name(policy_, entry.name) || run_as_.contains(entry.name))
            problems_.add(entry.where, key, "has the name of an agent's account",
                          "rename the user, choose another agent.user or run_as, or name this user in the policy and not in users.d");
        const auto account = agent_account_name(policy_, entry.name, entry.run_as);
        if (!entry.run_as && !policy_.people.contains(account)) check_account_is_nobodys(account, entry.where, key);
        if (entry.run_as) check_account_is_nobody_elses(entry, key);
        const auto [other, is_new] = accounts_.emplace(account, &entry);
        if (is_new) return;
        problems_.add(entry.where, key,
                      "has the account " + quote(account) + " of " + entry_key(*other->second) + " (" + to_string(other->second->where) +
                          "), but agent.accounts is 'per-user'",
                      "give each a run_as of its own, or say 'shared'");
    }

    void check_account_is_nobody_elses(const UserEntry &entry, const std::string &key)
    {
        const std::string prefix = policy_.agent.user + "-";
        if (!entry.run_as->starts_with(prefix)) return;
        const std::string other = entry.run_as->substr(prefix.size());
        if (to_number<uid_t>(other))
            problems_.add(entry.run_as_where, key + ".run_as",
                          quote(*entry.run_as) + " is how the account of the user with the uid " + other +
                              " is called where the user's name does not fit",
                          "name another account, or say 'shared'");
        if (!files_.has_unread || other == entry.name || !files_.has_unread(other)) return;
        problems_.add(entry.run_as_where, key + ".run_as",
                      quote(*entry.run_as) + " is the account of users." + other + " in users.d, but agent.accounts is 'per-user'",
                      "name another account, or say 'shared'");
    }

    const Policy &policy_;
    const UserFiles &files_;
    Problems &problems_;
    std::set<std::string> run_as_;
    std::map<std::string, const UserEntry *> users_;
    std::map<std::string, const UserEntry *> accounts_; // per-user: whose each is
};

} // namespace

const Rules &rules_of(const RulesPtr &rules) noexcept
{
    static const Rules nothing;
    return rules ? *rules : nothing;
}

std::string place_of_key(const Rules &rules, const char *key)
{
    const auto place = rules.places.find(key);
    return place == rules.places.end() ? std::string(key) : place->second.key;
}

std::string key_of_document(const std::string &file)
{
    return file.substr(0, file.rfind('.'));
}

void lay_over(Rules &outer, const Rules &inner)
{
    if (said_memory(inner.limits)) outer.limits.memory = outer.limits.memory_share = std::nullopt;
    each_level_key(
        [&](const char *key, const auto & /*read*/, auto &value, const auto &other) {
            if (!other) return;
            value = other;
            take_place(outer, inner, key);
        },
        outer, inner);
    for (const auto &[file, text] : inner.documents) {
        const auto [present, is_new] = outer.documents.emplace(file, text);
        const Json own = Json::parse(text);
        const Json all = is_new ? own : merged(Json::parse(present->second), own);
        present->second = all.dump();
        if (all != own)
            put_place_before(outer, inner, key_of_document(file));
        else
            take_place(outer, inner, key_of_document(file)); // nothing is left of what is around
    }
}

void lay_over(Policy &policy, const Rules &inner, Problems &problems)
{
    lay_over(policy.rules, inner);
    take_values(policy, policy.rules);
    policy.toolchains = settle_toolchains(policy.rules, problems);
}

std::vector<std::string> join(Rules &rules, const Rules &other)
{
    std::vector<std::string> differing;
    if (said_memory(rules.limits) && said_memory(other.limits) && rules.limits.memory.has_value() != other.limits.memory.has_value())
        differing.emplace_back("limits.memory"); // bytes, and a share of the host's
    each_level_key(
        [&](const char *key, const auto & /*read*/, auto &value, const auto &more) {
            if (!more) return;
            if (!value) {
                value = more;
                take_place(rules, other, key);
            } else if (add(*value, *more)) {
                add_place(rules, other, key);
            } else {
                differing.emplace_back(key);
            }
        },
        rules, other);
    for (const auto &[file, text] : other.documents) {
        const auto present = rules.documents.emplace(file, text).first;
        const auto one = Json::parse(present->second);
        const auto two = Json::parse(text);
        if (!agree(one, two)) differing.push_back(key_of_document(file));
        present->second = merged(one, two).dump();
        add_place(rules, other, key_of_document(file));
    }
    return differing;
}

bool say_the_same(const RulesPtr &one, const RulesPtr &other)
{
    if (one == other) return true;
    const Rules &some = rules_of(one);
    const Rules &others = rules_of(other);
    bool are_same = some.documents.size() == others.documents.size();
    each_level_key(
        [&](const char * /*key*/, const auto & /*read*/, const auto &value, const auto &more) { are_same = are_same && value == more; },
        some, others);
    return are_same && std::all_of(some.documents.begin(), some.documents.end(), [&](const auto &document) {
               const auto found = others.documents.find(document.first);
               return found != others.documents.end() && Json::parse(document.second) == Json::parse(found->second);
           });
}

bool settles(const Rules &own, const std::string &key, const Documents &one, const Documents &other)
{
    const auto said = own.documents.find(key + ".json");
    if (said == own.documents.end()) return own.places.contains(key);
    const auto first = Json::parse(one.at(said->first));
    const auto second = Json::parse(other.at(said->first));
    const auto inner = Json::parse(said->second);
    return merged(merged(first, second), inner) == merged(merged(second, first), inner);
}

// --- Checks which users may use pi, which accounts serve them, and what the method cannot honour.

void check_policy_rules(const Policy &policy, const UserFiles &files, Problems &problems)
{
    check_image(policy, problems);
    refuse_calls_without_filter(policy, problems);
    check_network_rules(policy, problems);
    for (const auto &entry : policy.users)
        check_levels(policy, entry, problems);
    check_roots_fit_unit(policy, problems);
    check_apart_from_state(policy, problems);
    if (policy.users.empty() && !files.has_unread && policy.wrapper.enable && !problems.has("users"))
        problems.add(policy.users_where, "users", "nobody is authorised", "add a user, or say 'wrapper: {enable: false}'");
    check_accounts_said(policy, files, problems);
    AccountRules rules(policy, files, problems);
    if (policy.agent.accounts != Accounts::per_user)
        rules.check_account_is_nobodys(policy.agent.user, policy.agent.user_where, "agent.user");
    for (const auto &entry : policy.users)
        rules.check_entry(entry);
}

} // namespace pi_agent
