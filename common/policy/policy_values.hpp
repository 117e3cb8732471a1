// Typed, strict readers of single policy values, and rules for the environment variables that they set.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_keys.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <functional>

namespace pi_agent {

// Typed, strict readers of single policy values: each reports what it refuses, and then returns nothing.

// A value of the policy, with the dotted key and the position for diagnostics.
struct PolicyValue {
    const YamlNode &node;
    Problems &problems;
    std::string key;
    Position where;
    const PolicyKey *entry = nullptr; // of the table; nullptr at the top, for an unknown key, and inside a document
    const YamlEntry *yaml = nullptr;  // whose value it is; nullptr at the top and in a list

    [[nodiscard]] bool is(YamlNode::Kind kind) const noexcept { return node.kind == kind; }
    [[nodiscard]] bool means(ScalarMeaning meaning) const { return is(YamlNode::Kind::scalar) && meaning_of_scalar(node) == meaning; }
    void report(const std::string &problem, const std::string &remedy) const { problems.add(where, key, problem, remedy); }
    // The same at the position of its name, in a mapping with free names.
    [[nodiscard]] PolicyValue at_its_name() const { return {node, problems, key, yaml->where, entry, yaml}; }
    // The mistake in its text.
    template <typename Problem>
    void refuse(const std::string &text, const Problem &problem) const
    {
        report(quote(text) + " " + problem.text, problem.remedy);
    }
};

// The value of `entry` in the mapping `parent`.
PolicyValue value_of(const YamlEntry &entry, const PolicyValue &parent);

using Reader = std::function<void(const PolicyValue &)>;

// Reads the value of one key of the table.
struct KeyRule {
    std::string_view name;
    Reader read;
};

// Passes each value of a mapping to its rule; one without a rule that the table has there to `otherwise`. Reports keys that the table does
// not have there, with the probable one. Throws Failure (internal) if a rule has no entry in the table, or an entry nothing that reads it.
void read_section(const PolicyValue &section, const std::vector<KeyRule> &rules, const Reader &otherwise = {});

// The values of a mapping whose keys are free, or of a list.
std::optional<std::vector<PolicyValue>> read_entries(const PolicyValue &mapping);
std::optional<std::vector<PolicyValue>> read_items(const PolicyValue &list);

std::optional<bool> read_bool(const PolicyValue &value);
// Literal text. Refuses NUL, and numbers and booleans without quotes.
std::optional<std::string> read_text(const PolicyValue &value);
// Text without control characters, not empty: names, paths, choices.
std::optional<std::string> read_line(const PolicyValue &value);
// A name of a user, group or program (is_plain_name).
std::optional<std::string> read_name(const PolicyValue &value);
// The number of the choice that the table has for the key.
std::optional<std::size_t> read_choice(const PolicyValue &value);

using PathRule = std::function<std::optional<TextProblem>(const std::string &)>;
// A line for which `problem_of` reports nothing, or the lines of a list.
std::optional<std::string> read_path(const PolicyValue &value, const PathRule &problem_of);
std::vector<PolicyPath> read_paths(const PolicyValue &list, const PathRule &problem_of);

template <auto problem_of>
std::optional<std::vector<PolicyPath>> read_paths_by(const PolicyValue &value)
{
    return read_paths(value, problem_of);
}

// The table has the choices in the order of the enumeration.
template <typename Choice>
std::optional<Choice> read_choice_of(const PolicyValue &value)
{
    const auto choice = read_choice(value);
    return choice ? std::optional(static_cast<Choice>(*choice)) : std::nullopt;
}

// Reads a value into `target`, which stays unchanged without a value.
template <typename Target, typename Value>
Reader into(Target &target, std::optional<Value> (*read)(const PolicyValue &))
{
    return [&target, read](const PolicyValue &value) {
        if (auto found = read(value)) target = std::move(*found);
    };
}
// Keeps the position, whatever the value is.
inline Reader with_place(Position &where, Reader read)
{
    return [&where, read = std::move(read)](const PolicyValue &value) {
        where = value.where;
        read(value);
    };
}

// Any YAML value as the text of JSON; reports what YAML readers disagree about, and writes null instead.
std::string read_json_text(const PolicyValue &value);

// Rules for environment variables that a policy, or a user's file, sets.

// [A-Za-z_][A-Za-z0-9_]*
bool is_variable_name(std::string_view name) noexcept;

// Why a policy may not set `name`: the name is invalid, pi-agent sets it itself, or it changes programs before they begin.
std::optional<std::string> problem_of_env_name(const std::string &name);

// Why a user's own file may not: the same, or it changes interpreters before they begin (NODE_OPTIONS, PYTHONSTARTUP, …).
std::optional<std::string> problem_of_host_env_name(const std::string &name);

// An `env` section. Reports and leaves out what may not be set.
void read_env(const PolicyValue &section, Environment &env, EnvironmentPlaces &places);

} // namespace pi_agent
