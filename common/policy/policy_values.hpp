// Typed, strict readers of single policy values: each reports what it refuses and returns nothing then.
#pragma once

#include "common/base/problems.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_keys.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// A value of the policy with the dotted key and the place that diagnostics name.
struct PolicyValue {
    const YamlNode &node;
    std::string key;
    Position where;
    const PolicyKey *entry = nullptr; // of the table; none at the top, for an unknown key, and within a document
};

// The value of `entry`, which lies in the mapping `parent`.
PolicyValue value_of(const YamlEntry &entry, const PolicyValue &parent);

// What reads the value of one key of the table.
struct KeyRule {
    std::string_view name;
    std::function<void(const PolicyValue &)> read;
};

// Hands each value of a mapping to its rule; keys that the table does not have there are reported, with what was probably meant. Throws
// Failure (internal) where the rules are not those of the table.
void read_section(const PolicyValue &section, const std::vector<KeyRule> &rules, Problems &problems);

// The values of a mapping whose keys are free, or of a list.
std::optional<std::vector<PolicyValue>> read_entries(const PolicyValue &mapping, Problems &problems);
std::optional<std::vector<PolicyValue>> read_items(const PolicyValue &list, Problems &problems);

std::optional<bool> read_bool(const PolicyValue &value, Problems &problems);
// Text as it stands: numbers and booleans without quotes are refused, and NUL.
std::optional<std::string> read_text(const PolicyValue &value, Problems &problems);
// Text without control characters, not empty: names, paths, choices.
std::optional<std::string> read_line(const PolicyValue &value, Problems &problems);
// A name of a user, group or program (is_plain_name).
std::optional<std::string> read_name(const PolicyValue &value, Problems &problems);
// One of the choices that the table has for the key.
std::optional<std::string> read_choice(const PolicyValue &value, Problems &problems);
// The paths of a list, each held against `problem_of`.
std::vector<PolicyPath> read_paths(const PolicyValue &list, std::optional<PathProblem> (*problem_of)(const std::string &),
                                   Problems &problems);
// For a key whose feature is not there yet: never ignored, whatever its value.
void refuse_unsupported(const PolicyValue &value, Problems &problems);

// Any YAML value as the text of JSON; what YAML readers disagree about is reported, and null stands in its place.
std::string read_json_text(const PolicyValue &value, Problems &problems);

} // namespace pi_agent
