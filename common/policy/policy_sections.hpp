// Reads the parts of a policy, one function for each key with a value of its own.
#pragma once

#include "common/policy/policy_values.hpp"

namespace pi_agent {

// --- Reads the joined YAML tree of a policy, section by section, into types.

// The whole policy from the tree of all its files; reports what it cannot use, and leaves the default there.
Policy read_policy(const YamlNode &root, Problems &problems);

// The value of a `version` key; reports anything but policy_version.
void read_version(const YamlNode &root, bool required, Problems &problems);

// --- Reads the policy's `network`.

// `network: full`, `loopback`, `none`, a list of ranges, or a mapping with hosts.
std::optional<NetworkPolicy> read_network(const PolicyValue &value);

// The gate has to look at each for every connection.
constexpr std::size_t most_host_rules = 1000;

// --- Reads the section `providers` of a level.

std::optional<std::vector<ProviderRule>> read_providers(const PolicyValue &section);

// --- Reads the section `toolchains` of a level, and `readable` of a user.

std::optional<HomeDirectories> read_readable_toolchains(const PolicyValue &value);
std::optional<HomeDirectories> read_caches(const PolicyValue &value);
std::optional<std::vector<PolicyPath>> read_readable(const PolicyValue &value);

// What of homes these rules show. A path that they name replaces the defaults that it overlaps, because the default lists grow. Reports two
// that are listed for one place.
ToolchainsPolicy settle_toolchains(const Rules &rules, Problems &problems);

// --- Reads what a level says: one row for each key, whichever level says it.

std::optional<Protection> read_protection(const PolicyValue &value);

template <auto problem_of>
std::optional<PolicyWord> read_word_by(const PolicyValue &value)
{
    auto text = read_path(value, problem_of);
    return text ? std::optional(PolicyWord{std::move(*text), value.where}) : std::nullopt;
}

// Calls `visit` with each value's own key, its reader, and that value of all these rules. Not for documents, which are merged, not
// replaced. common/policy/policy_keys.cpp says which level has which key.
template <typename Visit, typename... Some>
void each_level_key(const Visit &visit, Some &...rules)
{
    visit("network", read_network, rules.network...);
    visit("providers", read_providers, rules.providers...);
    for (const auto &row : limit_rows)
        visit(
            row.key, [&row](const PolicyValue &value) { return read_said_limit(row, value); }, rules.limits.*row.said...);
    visit("limits.disk_without_quota", read_choice_of<WithoutQuota>, rules.limits.without_quota...);
    visit("projects.paths", read_choice_of<ProjectPaths>, rules.paths...);
    visit("projects.scope", read_choice_of<ProjectScope>, rules.scope...);
    visit("projects.ownership", read_choice_of<ProjectOwnership>, rules.ownership...);
    visit("projects.protect", read_protection, rules.protect...);
    visit("projects.mask", read_paths_by<problem_of_project_path>, rules.mask...);
    visit("projects.aftermath", read_bool, rules.aftermath...);
    visit("projects.read_only", read_bool, rules.read_only...);
    visit("settings_lock", read_bool, rules.settings_lock...);
    visit("env_files", read_paths_by<problem_of_managed_file>, rules.env_files...);
    visit("toolchains.readable", read_readable_toolchains, rules.readable...);
    visit("toolchains.caches", read_caches, rules.caches...);
    visit("readable", read_readable, rules.own_readable...);
    visit("view_paths", read_paths_by<problem_of_view_path>, rules.view_paths...);
    visit("path", read_paths_by<problem_of_program_directory>, rules.path...);
    visit("devices", read_paths_by<problem_of_device>, rules.devices...);
    visit("scratch", read_choice_of<ScratchKind>, rules.scratch...);
    visit("placement.engine", read_choice_of<PlacementEngine>, rules.placement.engine...);
    visit("placement.srun", read_word_by<problem_of_srun>, rules.placement.srun...);
    visit("placement.partition", read_word_by<problem_of_job_word>, rules.placement.partition...);
    visit("placement.account", read_word_by<problem_of_job_word>, rules.placement.account...);
    visit("placement.qos", read_word_by<problem_of_job_word>, rules.placement.qos...);
    visit("placement.constraint", read_word_by<problem_of_job_word>, rules.placement.constraint...);
}

// --- Rules that hold between the values of a policy.

// What is known about users.d beyond the entries that were read.
struct UserFiles {
    bool are_possible = false;                           // the directory exists
    std::function<bool(const std::string &)> has_unread; // whether an unread file exists for this user; unset if all were read
};

// Reports networks that the method cannot make, and keys that a network would give away.
void check_network_rules(const Policy &policy, Problems &problems);

// A provider whose key a network without a gate would give away. `rules` have the place of the key that says the providers.
std::optional<Diagnostic> problem_of_providers(const NetworkPolicy &network, const std::vector<ProviderRule> &providers,
                                               const Rules &rules);

// Reports a policy that allows nobody, does not say whether users share an account, or gives the agent a user's account.
void check_policy_rules(const Policy &policy, const UserFiles &files, Problems &problems);

} // namespace pi_agent
