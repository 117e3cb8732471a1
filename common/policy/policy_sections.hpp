// The keys of a policy as data, the strict readers of their values, and the levels that say them.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <span>

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
    toggle,         // a boolean, or a mapping of the keys below it in the table
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

// --- Typed, strict readers of single policy values: each reports what it refuses, and then returns nothing.

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

// --- Reads the joined YAML tree of a policy, section by section, into types.

// The whole policy from the tree of all its files; reports what it cannot use, and leaves the default there.
Policy read_policy(const YamlNode &root, Problems &problems);

// The value of a `version` key; reports anything but policy_version.
void read_version(const YamlNode &root, bool required, Problems &problems);

// --- Readers of keys that have a form of their own.

// `network: full`, `loopback`, `none`, a list of ranges, or a mapping with hosts.
std::optional<NetworkPolicy> read_network(const PolicyValue &value);
std::optional<Protection> read_protection(const PolicyValue &value);
std::optional<UndoPolicy> read_undo(const PolicyValue &value);

// The gate has to look at each for every connection.
constexpr std::size_t most_host_rules = 1000;

std::optional<std::vector<ProviderRule>> read_providers(const PolicyValue &section);

// Of the section `toolchains` of a level, and `readable` of a user.
std::optional<HomeDirectories> read_readable_toolchains(const PolicyValue &value);
std::optional<HomeDirectories> read_caches(const PolicyValue &value);
std::optional<std::vector<PolicyPath>> read_readable(const PolicyValue &value);

// What of homes these rules show. A path that they name replaces the defaults that it overlaps, because the default lists grow. Reports two
// that are listed for one place.
ToolchainsPolicy settle_toolchains(const Rules &rules, Problems &problems);

// The key that names a directory of the user's home: of the user alone, or of the toolchains.
std::string key_of_home_directory(const Rules &rules, const std::string &path, bool is_cache);

// --- Reads what a level says: one row for each key, whichever level says it.

template <auto problem_of>
std::optional<PolicyWord> read_word_by(const PolicyValue &value)
{
    auto text = read_path(value, problem_of);
    return text ? std::optional(PolicyWord{std::move(*text), value.where}) : std::nullopt;
}

// Calls `visit` with each value's own key, its reader, and that value of all these rules. Not for documents, which are merged, not
// replaced. common/policy/policy.cpp says which level has which key.
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
    visit("projects.undo", read_undo, rules.undo...);
    visit("projects.read_only", read_bool, rules.read_only...);
    visit("wrapper.ports", read_bool, rules.ports...);
    visit("settings_lock", read_bool, rules.settings_lock...);
    visit("mcp_lock", read_bool, rules.mcp_lock...);
    visit("env_files", read_paths_by<problem_of_managed_file>, rules.env_files...);
    visit("toolchains.readable", read_readable_toolchains, rules.readable...);
    visit("toolchains.caches", read_caches, rules.caches...);
    visit("readable", read_readable, rules.own_readable...);
    visit("view_paths", read_paths_by<problem_of_view_path>, rules.view_paths...);
    visit("path", read_paths_by<problem_of_program_directory>, rules.path...);
    visit("devices", read_paths_by<problem_of_device>, rules.devices...);
    visit("scratch", read_choice_of<ScratchKind>, rules.scratch...);
    visit("placement.engine", read_choice_of<PlacementEngine>, rules.placement.engine...);
    visit("placement.srun", read_word_by<problem_of_absolute>, rules.placement.srun...);
    visit("placement.partition", read_word_by<problem_of_job_word>, rules.placement.partition...);
    visit("placement.account", read_word_by<problem_of_job_word>, rules.placement.account...);
    visit("placement.qos", read_word_by<problem_of_job_word>, rules.placement.qos...);
    visit("placement.constraint", read_word_by<problem_of_job_word>, rules.placement.constraint...);
}

// --- How the levels of a policy become one: what an inner level says replaces what the level around it says.

// Nothing, where `rules` is empty.
const Rules &rules_of(const RulesPtr &rules) noexcept;

// The key with which these rules say the value of `key`: "users.alice.network"; the key itself where they do not.
std::string place_of_key(const Rules &rules, const char *key);

// "settings" of "settings.json": the key that says this document.
std::string key_of_document(const std::string &file);

// --- From the outside in: each value of `inner` replaces the one of `outer`. Only documents are merged, as at a start: an object of both
// has the keys of both, and everything else is the inner one's.
void lay_over(Rules &outer, const Rules &inner);

// The policy with these rules laid over its own. Reports home directories that are then listed twice for one place.
void lay_over(Policy &policy, const Rules &inner, Problems &problems);

// --- Side by side: the rules of several groups of one user.

// Adds `other` to `rules`. Lists have the items of both. What both set differently has no right answer: returns its keys.
std::vector<std::string> join(Rules &rules, const Rules &other);

// Whether both say the same, wherever they say it. The order of a list counts, as it does for `path`.
bool say_the_same(const RulesPtr &one, const RulesPtr &other);

// Whether `own`, laid over both, says one of these keys itself. Of a document: all in it that differs, so that the order of the two, which
// are what they were before they were joined, changes nothing.
bool settles(const Rules &own, const std::string &key, const Documents &one, const Documents &other);

// --- Rules that hold between the values of a policy.

// What is known about users.d beyond the entries that were read.
struct UserFiles {
    bool are_possible = false;                           // the directory exists
    std::function<bool(const std::string &)> has_unread; // whether an unread file exists for this user; unset if all were read
};

// Reports networks and devices that the method cannot make, and keys that a network would give away.
void check_network_rules(const Policy &policy, Problems &problems);

// A provider whose key a network without a gate would give away. `rules` have the place of the key that says the providers.
std::optional<Diagnostic> problem_of_providers(const NetworkPolicy &network, const std::vector<ProviderRule> &providers,
                                               const Rules &rules);

// Reports a policy that allows nobody, does not say whether users share an account, or gives the agent a user's account.
void check_policy_rules(const Policy &policy, const UserFiles &files, Problems &problems);

// --- Environment files in the syntax of systemd's EnvironmentFile= (systemd.exec(5)): reads what systemd reads in the same way. What
// systemd drops with a line in the journal is an error here.

struct EnvAssignment {
    std::string name, value;
    std::string where; // "file:line"

    static void fields(auto &archive, auto &self) { archive(self.name, self.value, self.where); }
};

constexpr std::size_t env_file_limit = std::size_t{1} << 20U; // bytes

// Throws Failure(configuration) with `name`:line and the mistake, never with a value. Mistakes are an unclosed quote, a line without '=',
// an invalid name, bytes that are not UTF-8, control characters, and more than Linux passes to a program.
std::vector<EnvAssignment> parse_env_file(std::string_view text, const std::string &name);

} // namespace pi_agent
