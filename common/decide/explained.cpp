// Writes what holds in the words of a policy, finds what it exposes, and says keys in words.
#include "common/decide/explained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

std::string list_of(const std::vector<std::string> &texts)
{
    return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string to_yaml(const std::vector<PolicyPath> &paths, const PolicyKey & /*key*/)
{
    return list_of(mapped(paths, [&](const auto &path) { return escape_for_display(path.path) + (path.is_directory ? "/" : ""); }));
}

std::string to_yaml(const Protection &protection, const PolicyKey &key)
{
    return protection ? to_yaml(*protection, key) : "default";
}

// The default list is a word.
std::string to_yaml(const HomeDirectories &directories, const PolicyKey & /*key*/)
{
    std::vector<std::string> texts;
    bool has_default = false;
    for (const auto &path : directories.paths)
        if (path.where.line > 0)
            texts.push_back(escape_for_display(written_home_path(path.path)));
        else
            has_default = true;
    if (directories.best_effort) texts.insert(texts.begin(), "best_effort");
    if (has_default) texts.insert(texts.begin(), "default");
    return list_of(texts);
}

// A '*' begins an alias where no quotes stand.
std::string list_of_hosts(const std::vector<HostRule> &rules)
{
    const auto texts = mapped(rules, [&](const auto &rule) {
        return to_string(rule).find_first_of("*[:") == std::string::npos ? to_string(rule) : '"' + to_string(rule) + '"';
    });
    return list_of(texts);
}

std::string to_yaml(const NetworkPolicy &network, const PolicyKey &key)
{
    if (network.mode == NetworkMode::hosts) {
        const auto &file = network.via_login_file.path;
        return fmt::format("{{hosts: {}{}{}{}{}}}", list_of_hosts(network.hosts),
                           network.may_grant.empty() ? "" : ", may_grant: " + list_of_hosts(network.may_grant),
                           network.via ? ", via: http://" + host_and_port(network.via->host, network.via->port) : "",
                           network.direct.empty() ? "" : ", direct: " + list_of_hosts(network.direct),
                           file.empty() ? "" : ", via_login_file: " + escape_for_display(file));
    }
    if (network.mode != NetworkMode::listed) return std::string(split(key.choices, ' ').at(static_cast<std::size_t>(network.mode)));
    return list_of(mapped(network.allowed, [&](const auto &range) { return to_string(range); }));
}

// Whether it differs from what the table of providers has.
bool has_host(const ProviderRule &provider)
{
    const auto *known = find_provider(provider.name);
    return known == nullptr || known->host != provider.host;
}

std::string to_yaml(const std::vector<ProviderRule> &providers, const PolicyKey & /*key*/)
{
    const auto texts = mapped(providers, [&](const auto &provider) {
        return fmt::format("{}: {{key_file: {}{}{}}}", provider.name, escape_for_display(provider.key_file.path),
                           has_host(provider) ? ", host: " : "", has_host(provider) ? provider.host : "");
    });
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string to_yaml(const SaidLimit &limit, const PolicyKey & /*key*/)
{
    return limit.text;
}

std::string to_yaml(const UndoPolicy &undo, const PolicyKey & /*key*/)
{
    if (!undo.on || undo == UndoPolicy()) return undo.on ? "true" : "false";
    return "{size: " + undo.size.text + ", file: " + undo.file.text + "}";
}

std::string to_yaml(const PolicyWord &word, const PolicyKey & /*key*/)
{
    return escape_for_display(word.text);
}

std::string to_yaml(bool value, const PolicyKey & /*key*/)
{
    return value ? "true" : "false";
}

// The table has the choices in the order of the enumeration.
template <typename Choice>
requires std::is_enum_v<Choice> std::string to_yaml(Choice value, const PolicyKey &key)
{
    return std::string(split(key.choices, ' ').at(static_cast<std::size_t>(value)));
}

bool is_value(const PolicyKey &key)
{
    for (const auto *whole : {".network.", ".undo."}) // each is one value
        if (key.path.find(whole) != key.path.npos) return false;
    if (key.path == "users.*.providers") return true; // the same
    return key.form != ValueForm::section && key.form != ValueForm::names && !key.path.starts_with("users.*.providers.");
}

constexpr std::string_view secret_words = "KEY TOKEN SECRET SECRETS PASSWORD PASSWD PASS PASSPHRASE CREDENTIAL CREDENTIALS";

// API_KEY, githubToken and DB_PASSWORD_2 do; KEYBOARD and MONKEY do not.
bool has_secret_word(std::string_view name)
{
    std::string word;
    bool was_lower = false;
    for (const char byte : name) {
        const bool lower = byte >= 'a' && byte <= 'z';
        const bool upper = byte >= 'A' && byte <= 'Z';
        if ((!lower && !upper) || (upper && was_lower)) {
            if (has_word(secret_words, word)) return true;
            word.clear();
        }
        if (lower || upper) word += static_cast<char>(lower ? byte - 'a' + 'A' : byte);
        was_lower = lower;
    }
    return has_word(secret_words, word) || has_word(secret_words, word.starts_with("API") ? std::string_view(word).substr(3) : word);
}

// "scheme://user:password@host"
bool has_password_in_url(std::string_view value) noexcept
{
    const auto scheme = value.find("://");
    if (scheme == std::string_view::npos) return false;
    const auto authority = value.substr(scheme + 3, value.find_first_of("/?#", scheme + 3) - (scheme + 3));
    const auto at = authority.rfind('@');
    return at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
}

constexpr const char *for_everybody = "move it into a file that only root can read, and name that file in env_files";
constexpr const char *for_one_user =
    "move it into a file of that user's own (host_env_files, ~/.pi/agent/env for one); env_files is for everybody";

void find_in(const Environment &env, const EnvironmentPlaces &places, const std::string &key, const char *remedy,
             std::vector<Diagnostic> &found)
{
    for (const auto &[name, value] : env) {
        const bool by_name = has_secret_word(name);
        if (!by_name && !has_password_in_url(value)) continue;
        const auto place = places.find(name);
        found.push_back({place == places.end() ? Position{} : place->second, key + "." + name,
                         by_name ? "looks like a secret, and every user of this host can read the policy"
                                 : "holds a password, and every user of this host can read the policy",
                         remedy});
    }
}

// A character above U+007F: escape_for_display() writes others as \xNN.
std::string encode_utf8(char32_t character)
{
    const auto last = [character](unsigned shift) { return static_cast<char>(0x80U | ((character >> shift) & 0x3FU)); };
    if (character < 0x800) return {static_cast<char>(0xC0U | (character >> 6U)), last(0)};
    if (character < 0x10000) return {static_cast<char>(0xE0U | (character >> 12U)), last(6), last(0)};
    return {static_cast<char>(0xF0U | (character >> 18U)), last(12), last(6), last(0)};
}

// What the first byte of `shown`, or the escape that begins there, stands for, and its length.
std::pair<std::string, std::size_t> unescape_first(std::string_view shown)
{
    if (shown.starts_with("\\x") && shown.size() >= 4)
        if (const auto byte = to_number<unsigned char>(shown.substr(2, 2), 16)) return {std::string(1, static_cast<char>(*byte)), 4};
    if (const std::size_t end = shown.starts_with("\\u{") ? shown.find('}') : std::string_view::npos; end != std::string_view::npos) {
        const auto character = to_number<std::uint32_t>(shown.substr(3, end - 3), 16);
        if (character && is_deceptive(*character) && *character > 0x7F) return {encode_utf8(*character), end + 1};
    }
    return {std::string(1, shown.front()), 1};
}

constexpr PolicyTask task_table[] = {
#include "common/policy_tasks.inc"
};

bool is_below(std::string_view path, std::string_view top)
{
    return path.substr(0, top.size()) == top && (path.size() == top.size() || path[top.size()] == '.');
}

// The task that names most of the key's path has the key.
const PolicyTask *task_of(std::string_view path)
{
    const PolicyTask *found = nullptr;
    std::size_t most = 0;
    for (const auto &task : task_table)
        for (const auto top : split(task.keys, ' '))
            if (is_below(path, top) && top.size() > most) {
                most = top.size();
                found = &task;
            }
    return found;
}

std::string words(std::string_view list)
{
    return fmt::format("{}", fmt::join(mapped(split(list, ' '), [&](const auto word) { return fmt::format("`{}`", word); }), ", "));
}

} // namespace

// Writes effective values as the policy would.

std::vector<EffectiveValue> effective_values(const Policy &policy)
{
    std::map<std::string_view, const PolicyKey *> keys;
    for (const auto &key : policy_keys())
        keys.emplace(key.path == "users.*.readable" ? "readable" : key.path, &key);
    std::map<std::string, std::string> texts;
    each_level_key(
        [&](const char *name, const auto & /*read*/, const auto &value) {
            if (value) texts[name] = to_yaml(*value, *keys.at(name));
        },
        policy.rules);
    for (const auto &[file, text] : policy.documents)
        texts[key_of_document(file)] = escape_for_display(text);
    std::vector<EffectiveValue> values;
    for (const auto &key : policy_keys()) {
        const bool is_at_users = key.path.starts_with("users.*.") && !key.path.starts_with("users.*.roots.") && !key.repeats.empty();
        const bool is_readable = key.path == "users.*.readable";
        if ((!is_at_users && !is_readable) || !is_value(key)) continue;
        const std::string name(is_readable ? "readable" : key.repeats);
        const auto text = texts.find(name);
        const auto place = policy.rules.places.find(name);
        const auto said = place == policy.rules.places.end() ? std::nullopt : std::optional(place->second);
        values.push_back({name, text == texts.end() ? std::string(keys.at(name)->standard) : text->second, said});
    }
    return values;
}

// Secrets in what everybody can read.

bool looks_secret(const std::string &name, const std::string &value)
{
    return has_secret_word(name) || has_password_in_url(value);
}

std::vector<Diagnostic> find_exposed_secrets(const Policy &policy)
{
    std::vector<Diagnostic> found;
    find_in(policy.env, policy.env_where, "env", for_everybody, found);
    for (const auto &entry : policy.users)
        find_in(entry.env, entry.env_where, entry_key(entry) + ".env", for_one_user, found);
    return found;
}

// srun's options as the policy says them.

std::string srun_of(const Policy &policy)
{
    return policy.placement.srun ? policy.placement.srun->text : default_srun;
}

std::vector<std::string> job_options(const Policy &policy, const std::string &name)
{
    const auto &limits = policy.limits;
    const auto &placement = policy.placement;
    constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
    std::vector<std::string> options = {"--nodes=1", "--ntasks=1", "--job-name=" + name};
    if (limits.memory) options.push_back(fmt::format("--mem={}M", (limits.memory->amount + mebibyte - 1) / mebibyte));
    if (limits.cpu) options.push_back(fmt::format("--cpus-per-task={}", (limits.cpu->amount + 99) / 100));
    if (limits.runtime) options.push_back(fmt::format("--time={}", (limits.runtime->amount + 59) / 60)); // minutes
    const auto add = [&](const char *option, const std::optional<PolicyWord> &word) {
        if (word) options.push_back(fmt::format("--{}={}", option, word->text));
    };
    add("partition", placement.partition);
    add("account", placement.account);
    add("qos", placement.qos);
    add("constraint", placement.constraint);
    return options;
}

std::vector<std::string> srun_arguments(const Policy &policy, const std::vector<std::string> &command)
{
    std::vector<std::string> arguments = job_options(policy, job_name);
    // The working directory's name is not srun's to carry; and of what srun says, its errors alone are for people here.
    arguments.insert(arguments.end(), {"--chdir=/", "--quiet"});
    arguments.insert(arguments.end(), command.begin(), command.end());
    return arguments;
}

// Reads back what was shown.

std::string without_escapes(std::string_view shown)
{
    std::string bytes;
    while (!shown.empty()) {
        const auto [text, length] = unescape_first(shown);
        bytes += text;
        shown.remove_prefix(length);
    }
    return bytes;
}

// --- Keys in words: the table of tasks, forms, and levels.

std::span<const PolicyTask> policy_tasks() noexcept
{
    return task_table;
}

std::vector<const PolicyKey *> policy_keys_of(const PolicyTask &task)
{
    std::vector<const PolicyKey *> keys;
    for (const auto &key : policy_keys())
        if (key.repeats.empty() && task_of(key.path) == &task) keys.push_back(&key);
    return keys;
}

std::string levels_text(const PolicyKey &key)
{
    std::vector<std::string> others;
    for (const auto &other : policy_keys())
        if (other.repeats == key.path) others.push_back(fmt::format("`{}`", display_path(other)));
    return others.empty() ? "" : fmt::format("Also {}.", fmt::join(others, " and "));
}

std::string form_text(const PolicyKey &key)
{
    constexpr const char *forms[] = {"the number {1}",
                                     "a mapping",
                                     "a mapping of names",
                                     "a mapping, as JSON",
                                     "`true`, `false`",
                                     "text",
                                     "text",
                                     "a name",
                                     "{0}",
                                     "a list",
                                     "a list, also of mappings",
                                     "{0}, or a list",
                                     "{0}, a list, or a mapping",
                                     "`true`, `false`, or a mapping",
                                     "a whole number with {0}",
                                     "a whole number"}; // in the order of ValueForm
    return fmt::format(fmt::runtime(forms[static_cast<std::size_t>(key.form)]), words(key.choices), policy_version);
}

} // namespace pi_agent
