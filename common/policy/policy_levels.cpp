// Merges the rules of levels, and gives a policy the values of the merged ones.
#include "common/policy/policy_sections.hpp"

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
    if (!protection || !other) return protection.has_value() == other.has_value();
    return add(*protection, *other);
}

// A group that may reach some addresses or hosts, and another that may reach others.
bool add(NetworkPolicy &network, const NetworkPolicy &other)
{
    if (network.mode != other.mode) return false;
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
    take(policy.projects.mask, rules.mask);
    take(policy.projects.aftermath, rules.aftermath);
    take(policy.projects.read_only, rules.read_only);
    policy.documents = rules.documents;
    take(policy.settings_lock, rules.settings_lock);
    take(policy.env_files, rules.env_files);
    take(policy.view_paths, rules.view_paths);
    take(policy.path, rules.path);
    take(policy.devices, rules.devices);
    take(policy.scratch, rules.scratch);
}

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

bool says(const Rules &rules, const std::string &key)
{
    return rules.places.contains(key);
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
        const auto key = key_of_document(file);
        if (is_new) {
            take_place(outer, inner, key);
            continue;
        }
        const Json own = Json::parse(text);
        const Json all = merged(Json::parse(present->second), own);
        present->second = all.dump();
        if (all == own)
            take_place(outer, inner, key); // nothing is left of what is around
        else
            put_place_before(outer, inner, key);
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
        const auto [present, is_new] = rules.documents.emplace(file, text);
        const auto key = key_of_document(file);
        if (is_new) {
            take_place(rules, other, key);
            continue;
        }
        const auto one = Json::parse(present->second);
        const auto two = Json::parse(text);
        if (!agree(one, two)) differing.push_back(key);
        present->second = merged(one, two).dump();
        add_place(rules, other, key);
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
    if (said == own.documents.end()) return says(own, key);
    const auto first = Json::parse(one.at(said->first));
    const auto second = Json::parse(other.at(said->first));
    const auto inner = Json::parse(said->second);
    return merged(merged(first, second), inner) == merged(merged(second, first), inner);
}

} // namespace pi_agent
