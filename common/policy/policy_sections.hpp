// Reads the parts of a policy, one function for each key with a value of its own.
#pragma once

#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <functional>
#include <optional>
#include <string>

namespace pi_agent {

// --- Reads the joined YAML tree of a policy, section by section, into types.

// The whole policy from the tree of all its files; reports what it cannot use, and leaves the default there.
Policy read_policy(const YamlNode &root, Problems &problems);

// The value of a `version` key; reports anything but policy_version.
void read_version(const YamlNode &root, bool required, Problems &problems);

// --- Reads the policy's `users`: who may run the agent, where, and with which files of theirs.

// Appends to policy.users; reports what it cannot use.
void read_users(const PolicyValue &section, Policy &policy);

// --- Reads what each level of a policy can say: one reader of each key, whoever's it is.
enum class Level { policy, user, root };

// The rules for the keys of a level that common/policy/policy_keys.cpp lists. Each also notes where its value stands.
std::vector<KeyRule> level_readers(Rules &rules, Level level);

// --- Reads the section `limits` of a level.

// With less, an agent cannot work (docs/concepts/limits.md says what was measured).
constexpr std::uint64_t least_memory = std::uint64_t{128} << 20U;
constexpr std::uint64_t least_tasks = 32;
constexpr std::uint64_t least_cpu = 10;     // percent
constexpr std::uint64_t least_runtime = 10; // seconds
constexpr std::uint64_t least_disk = std::uint64_t{64} << 20U;
constexpr std::uint64_t most_sessions_of_user = 64; // each costs root processes, mounts and a connection to the system bus

void read_limits(const PolicyValue &section, Rules &rules);

// The one that is set, bytes or share.
const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept;

// --- Reads the policy's `network`.

// `network: full`, `loopback`, `none`, a list of ranges, or a mapping with hosts.
std::optional<NetworkPolicy> read_network(const PolicyValue &value);

// The gate has to look at each for every connection.
constexpr std::size_t most_host_rules = 1000;

// `network: {hosts: […], may_grant: […]}`
std::optional<NetworkPolicy> read_hosts(const PolicyValue &section);

// --- Reads the section `providers` of a level.

std::optional<std::vector<ProviderRule>> read_providers(const PolicyValue &section);

// --- Reads the section `toolchains` of a level, and `readable` of a user.

void read_toolchains(const PolicyValue &section, Rules &rules);
void read_readable(const PolicyValue &value, Rules &rules);

// What of homes these rules show. A path that they name replaces the defaults that it overlaps, because the default lists grow. Reports two
// that are listed for one place.
ToolchainsPolicy settle_toolchains(const Rules &rules, Problems &problems);

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
