// Every key of a policy as data: its place, its values, its meaning, and the task that it belongs to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// --- The keys of a policy: the one table behind the parser, the JSON Schema and docs/reference/policy.md (policy_keys.toml).

// The policy language that this pi-agent reads: the value of the key `version`.
constexpr int policy_version = 1;

// The form of a value. Its reader checks what goes beyond the form: absolute paths, bounds, keys that exclude each other.
enum class ValueForm {
    version,  // policy_version
    section,  // a mapping of the keys below it in the table
    names,    // a mapping whose keys are free; the entry `PATH.*` is each of its values
    document, // a mapping of whatever JSON can say
    boolean,
    text,           // without NUL
    line,           // text without control characters, not empty
    name,           // of an account, a group or a program (is_plain_name)
    choice,         // one of `choices`
    list,           // of lines
    roots,          // a list of lines, or of mappings of the keys below its entry `PATH.*` in the table
    choice_or_list, // one of `choices`, or a list of lines
    network,        // the same, or a mapping of the keys below it in the table
    amount,         // digits and one of `choices`, the units
    count,          // a whole number
};

// One key. Lists of words are separated by spaces; `standard` and `example` are YAML.
struct PolicyKey {
    std::string_view path; // "agent.binary"; '*' stands for a free name: "users.*.roots"
    ValueForm form;
    std::string_view standard = {}; // the default, or empty: it holds for limits; for other keys a field of Policy does
    std::string_view example = {};
    std::string_view meaning = {}; // sentences, for people
    std::string_view choices = {};
    std::string_view page = {};    // below docs/, with more about it
    bool required = false;         // in its mapping
    std::size_t fewest_items = 0;  // of a list
    std::string_view repeats = {}; // the key of the whole policy that it is at the level of a user or root: "limits.memory"
};

// Every key, each after its parent, in the order of the reference page; then those that repeat one of the whole policy at another level.
std::span<const PolicyKey> policy_keys() noexcept;

// Those directly below `path`, in order; "" is the top.
std::vector<const PolicyKey *> policy_keys_below(std::string_view path);

// The entry of the key `name` below `path`, or of a free name there; nullptr if there is neither.
const PolicyKey *find_policy_key(std::string_view path, std::string_view name);

// The last part of the path: "binary" of "agent.binary".
std::string_view last_part(const PolicyKey &key) noexcept;

// "users.NAME.roots", "users.NAME.roots[N].mask": for people.
std::string display_path(const PolicyKey &key);

// --- The values that a key accepts, in words, for docs/reference/policy.md and the manual.

// "Also `users.NAME.network`." for keys that users or roots have, too; or nothing.
std::string levels_text(const PolicyKey &key);

// "a whole number with `K`, `M`": the form of its value in Markdown, literal words in backquotes.
std::string form_text(const PolicyKey &key);

// The policy's keys by what an administrator wants to do, each task with one example: the order of the reference page and the manual.
struct PolicyTask {
    std::string_view title;   // of a section: "Limits"
    std::string_view keys;    // paths, separated by spaces; each includes everything below it that no other task names
    std::string_view example; // lines of YAML, a policy together with `version: 1` and, where it names no users, these
};

std::span<const PolicyTask> policy_tasks() noexcept;

// The keys of a task, in the order of the table. Every key has one task, except those that repeat one for a user or root: they are told
// with it.
std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task);

} // namespace pi_agent
