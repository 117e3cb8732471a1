// Checks what sessions reach: networks that the method cannot make, and keys that a network would give away.
#include "common/policy/policy_sections.hpp"

#include "common/policy/policy_levels.hpp"

#include <algorithm>
#include <set>

namespace pi_agent {

namespace {

std::string place_of_key(const Rules &rules, const char *key)
{
    const auto place = rules.places.find(key);
    return place == rules.places.end() ? std::string(key) : place->second.key;
}

// What one level says, and the method cannot honour: nothing is ever dropped in silence.
void refuse_what_method_cannot(const SandboxPolicy &sandbox, const Rules &rules, Problems &problems)
{
    if (problems.has("sandbox.method")) return;
    const std::string method = std::string("sandbox.method ") + to_string(sandbox.method) + " (" + to_string(sandbox.where) + ")";
    const auto mode = rules.network ? rules.network->mode : NetworkMode::full;
    if (sandbox.method == SandboxMethod::bwrap && (mode == NetworkMode::loopback || mode == NetworkMode::listed))
        problems.add(rules.network->where, place_of_key(rules, "network"),
                     method + " cannot filter addresses: it has the host's network, or one of the session's own with nothing in it",
                     "use 'full' or 'none', or the method systemd");
    if (has_gate(sandbox.method)) return;
    if (mode == NetworkMode::hosts)
        problems.add(rules.network->where, place_of_key(rules, "network"), method + " has no gate that could hold a session to hosts",
                     sandbox.method == SandboxMethod::bwrap ? "use 'full' or 'none', or the method systemd"
                                                            : "use 'full', or the method systemd");
    if (rules.providers && !rules.providers->empty())
        problems.add(rules.providers->front().where, place_of_key(rules, "providers"),
                     method + " has no gate that could keep their keys outside of sessions",
                     "put the keys into env_files, where sessions can read them, or use the method systemd");
}

// The networks and keys of the levels of one entry. Groups of a user with an entry of their own lie between, and who is in a group is not
// known here: what they may say is left to the start (common/decide/effective.hpp).
class KeyRules {
public:
    KeyRules(const Policy &policy, Problems &problems) : policy_(policy), problems_(problems)
    {
        for (const auto &entry : policy.users) {
            groups_with_network_ += entry.is_group && rules_of(entry.rules).network ? 1 : 0;
            groups_with_providers_ += entry.is_group && rules_of(entry.rules).providers ? 1 : 0;
        }
    }

    void check_whole() { check(policy_.rules.network, policy_.rules); }

    void check_entry(const UserEntry &entry)
    {
        const Rules &own = rules_of(entry.rules);
        const bool providers_known = own.providers || groups_with_providers_ == 0;
        const Rules &saying = own.providers ? own : policy_.rules;
        if (!providers_known || !saying.providers || saying.providers->empty()) return;
        for (const auto &root : entry.roots) {
            const auto &at_root = rules_of(root.rules).network;
            if (!at_root && !own.network && groups_with_network_ > 0) continue;
            check(at_root ? at_root : own.network ? own.network : policy_.rules.network, saying);
        }
    }

private:
    // `saying` says the providers.
    void check(const std::optional<NetworkPolicy> &network, const Rules &saying)
    {
        const auto problem =
            problem_of_providers(network.value_or(NetworkPolicy()), saying.providers.value_or(std::vector<ProviderRule>()), saying);
        if (problem && told_.insert(to_string(*problem)).second)
            problems_.add(problem->where, problem->key, problem->problem, problem->remedy);
    }

    const Policy &policy_;
    Problems &problems_;
    int groups_with_network_ = 0;
    int groups_with_providers_ = 0;
    std::set<std::string> told_;
};

} // namespace

bool has_gate(SandboxMethod method) noexcept
{
    return has_unit(method) && method != SandboxMethod::none; // systemd starts the gate, as an account that lives as long as it does
}

std::optional<Diagnostic> problem_of_providers(const NetworkPolicy &network, const std::vector<ProviderRule> &providers, const Rules &rules)
{
    if (providers.empty() || network.mode == NetworkMode::hosts || network.mode == NetworkMode::none) return std::nullopt;
    const char *mode = network.mode == NetworkMode::full ? "full" : network.mode == NetworkMode::loopback ? "loopback" : "a list of ranges";
    const std::string where = network.where.file.empty() ? "the default" : to_string(network.where);
    return Diagnostic{providers.front().where, place_of_key(rules, "providers"),
                      std::string("its key stays outside, but the network of these sessions is ") + mode + " (" + where +
                          "), which has no gate that could put it into requests",
                      "name the hosts that sessions reach, as in 'network: {hosts: [github.com]}', or put the key into env_files"};
}

void check_network_rules(const Policy &policy, Problems &problems)
{
    refuse_what_method_cannot(policy.sandbox, policy.rules, problems);
    const bool are_read = !problems.has("network") && !problems.has("providers"); // else their consequences are not another mistake
    KeyRules keys(policy, problems);
    if (policy.users.empty() && are_read) keys.check_whole();
    for (const auto &entry : policy.users) {
        if (entry.rules) refuse_what_method_cannot(policy.sandbox, *entry.rules, problems);
        for (const auto &root : entry.roots)
            if (root.rules) refuse_what_method_cannot(policy.sandbox, *root.rules, problems);
        if (are_read) keys.check_entry(entry);
    }
}

} // namespace pi_agent
