// The policy as types, the table of its keys, and what follows from both without asking the host.
#include "common/policy/policy_sections.hpp"

#include "common/base/build_settings.hpp"
#include "common/host/account.hpp"

#include <deque>
#include <fmt/format.h>

namespace pi_agent {

namespace {

enum class Verdict { amount, no_amount, out_of_bounds };

constexpr std::pair<char, std::uint64_t> factors[] = {{'K', std::uint64_t{1} << 10U},
                                                      {'M', std::uint64_t{1} << 20U},
                                                      {'G', std::uint64_t{1} << 30U},
                                                      {'T', std::uint64_t{1} << 40U},
                                                      {'s', 1},
                                                      {'%', 1},
                                                      {'m', 60},
                                                      {'h', 3600},
                                                      {'d', 24 * 3600}};

// Digits without a leading zero and one unit; nothing else is an amount.
Verdict parse(std::string_view text, const LimitRow &row, std::uint64_t &amount)
{
    std::uint64_t factor = 1;
    if (!row.units.empty()) {
        if (text.empty() || row.units.find(text.back()) == std::string_view::npos) return Verdict::no_amount;
        factor = std::find_if(std::begin(factors), std::end(factors), [&](const auto &one) { return one.first == text.back(); })->second;
        text.remove_suffix(1);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits || (text.front() == '0' && text.size() > 1)) return Verdict::no_amount;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    if (error != std::errc() || amount > row.most / factor) return Verdict::out_of_bounds;
    amount *= factor;
    return amount < row.least ? Verdict::out_of_bounds : Verdict::amount;
}

constexpr std::array<std::string_view, 5> class_names = {"mirror", "seed", "once", "agent", "never"}; // in the order of FileClass

// By the first component of a path. Documents that both sides write, and credentials, are merged by key (runner/as_agent/writer.hpp):
// seed says that what was changed inside survives.
FileClass default_class(std::string_view top) noexcept
{
    if (has_word("settings.json auth.json mcp-auth.json trust.json", top)) return FileClass::seed;
    if (has_word("bin git npm", top)) return FileClass::once;
    if (has_word("sessions crashes.json models-store.json mcp.log.1", top)) return FileClass::agent;
    if (top == "tmp" || top.ends_with(".lock") || top.starts_with("mcp-auth-refresh-")) return FileClass::never;
    return top.ends_with(".log") ? FileClass::agent : FileClass::mirror;
}

// Which keys of the whole policy users and roots may say for their own sessions: the one list behind parser, schema and pages.

// At the level of a user or group, by the same name; each with all keys below it, except those of `never_below`.
constexpr std::string_view of_users = "network providers limits projects settings models keybindings mcp settings_lock mcp_lock env_files "
                                      "toolchains view_paths path devices scratch placement wrapper";
constexpr std::string_view never_below = "projects.ownership placement.srun wrapper.enable wrapper.command_name "
                                         "wrapper.hide_direct_binary wrapper.clipboard";

// At the level of a root, where `projects` is what it is about; each with all keys below it.
struct OfRoot {
    std::string_view name, repeats;
};
constexpr OfRoot of_roots[] = {{"network", "network"},    {"scope", "projects.scope"}, {"protect", "projects.protect"},
                               {"mask", "projects.mask"}, {"undo", "projects.undo"},   {"read_only", "projects.read_only"}};

// The table refers to texts, and these are nobody else's.
std::string_view keep(std::string text)
{
    static std::deque<std::string> texts;
    return texts.emplace_back(std::move(text));
}

// Without a default: what is not said is for the level around it.
PolicyKey at_level(const PolicyKey &key, std::string path, const char *whose)
{
    PolicyKey repeated = key;
    repeated.path = keep(std::move(path));
    repeated.standard = {};
    repeated.repeats = key.path;
    const char *relation = key.form == ValueForm::document ? "merged over" : "instead of"; // common/policy/policy_levels.cpp
    repeated.meaning = keep(fmt::format("`{}` for {}, {} what holds for others.", key.path, whose, relation));
    repeated.page = "concepts/levels.md";
    return repeated;
}

// The table of keys of the whole policy, of users and of their roots, and what users and roots repeat of the first.
std::vector<PolicyKey> with_levels(std::span<const PolicyKey> keys)
{
    std::vector<PolicyKey> all(keys.begin(), keys.end());
    for (const auto &key : keys)
        if (has_word(of_users, key.path.substr(0, key.path.find('.'))) && !has_word(never_below, key.path))
            all.push_back(at_level(key, fmt::format("users.*.{}", key.path), "the sessions of this user or group"));
    for (const auto &[name, repeats] : of_roots)
        for (const auto &key : keys)
            if (key.path == repeats || key.path.starts_with(fmt::format("{}.", repeats)))
                all.push_back(at_level(key, fmt::format("users.*.roots.*.{}{}", name, key.path.substr(repeats.size())),
                                       "sessions in this directory"));
    return all;
}

// The table of common/policy/policy_keys.toml. read_section compares the reader of a section with its entries here. It is made when
// something first asks for it, because other static objects may ask before.
const auto &table()
{
    static const std::vector<PolicyKey> keys = with_levels(std::vector<PolicyKey>{
#include "common/policy_keys.inc"
    });
    return keys;
}

// By their parent: each entry of a policy is looked up, and a policy may have a hundred thousand.
const auto &keys_by_parent()
{
    static const auto sorted = [] {
        std::map<std::string_view, std::vector<const PolicyKey *>> keys;
        for (const auto &key : table())
            keys[key.path.substr(0, key.path.find('.') == std::string_view::npos ? 0 : key.path.rfind('.'))].push_back(&key);
        return keys;
    }();
    return sorted;
}

} // namespace

// --- Reads the limits of sessions, and says which amount is in force.

const LimitRow &limit_row(LimitMember limit)
{
    return *std::find_if(std::begin(limit_rows), std::end(limit_rows), [limit](const LimitRow &row) { return row.said == limit; });
}

const std::optional<SaidLimit> &said_memory(const LimitsPolicy &limits) noexcept
{
    return limits.memory ? limits.memory : limits.memory_share;
}

const std::optional<SaidLimit> &said_for_key(const LimitsPolicy &limits, const LimitRow &row) noexcept
{
    return row.said == &LimitsPolicy::memory || row.said == &LimitsPolicy::memory_share ? said_memory(limits) : limits.*row.said;
}

std::string_view default_text(const LimitRow &row)
{
    const std::string_view key = row.key;
    const auto dot = key.find('.');
    return find_policy_key(key.substr(0, dot), key.substr(dot + 1))->standard;
}

std::optional<std::uint64_t> in_force(const LimitsPolicy &limits, const LimitRow &row)
{
    if (const auto &said = limits.*row.said) return said->amount;
    std::uint64_t amount = 0;
    const bool is_default = !said_for_key(limits, row) && parse(default_text(row), row, amount) == Verdict::amount;
    return is_default ? std::optional(amount) : std::nullopt;
}

std::uint64_t in_force(const LimitsPolicy &limits, LimitMember limit)
{
    return in_force(limits, limit_row(limit)).value();
}

std::string text_in_force(const LimitsPolicy &limits, const LimitRow &row)
{
    if (const auto &said = limits.*row.said) return said->text;
    return in_force(limits, row) ? std::string(default_text(row)) : "";
}

std::optional<SaidLimit> read_said_limit(const LimitRow &row, const PolicyValue &value)
{
    const bool scalar = value.is(YamlNode::Kind::scalar);
    SaidLimit limit{0, scalar ? value.node.text : "", value.where};
    const bool is_share = limit.text.ends_with('%');
    if ((row.said == &LimitsPolicy::memory && is_share) || (row.said == &LimitsPolicy::memory_share && !is_share)) return std::nullopt;
    // A number in quotes is text. A number without quotes has no unit.
    const bool kind = scalar && value.means(ScalarMeaning::text) != row.units.empty();
    switch (kind ? parse(limit.text, row, limit.amount) : Verdict::no_amount) {
    case Verdict::amount:
        return limit;
    case Verdict::no_amount:
        value.report(std::string("must be ") + row.form + ", found " + describe(value.node), "correct it, or remove the key");
        break;
    case Verdict::out_of_bounds:
        value.report(escape_for_display(limit.text) + " is out of bounds", std::string("say ") + row.bounds);
        break;
    }
    return std::nullopt;
}

// --- What follows from a policy without asking the host: the classes of the config directory among it.

std::optional<FileClass> parse_file_class(std::string_view text) noexcept
{
    const auto *const found = std::find(class_names.begin(), class_names.end(), text);
    return found == class_names.end() ? std::nullopt : std::optional(static_cast<FileClass>(found - class_names.begin()));
}

std::string_view to_string(FileClass file_class) noexcept
{
    return class_names[static_cast<std::size_t>(file_class)];
}

bool is_copied(FileClass file_class) noexcept
{
    return file_class == FileClass::mirror || file_class == FileClass::seed || file_class == FileClass::once;
}

std::map<std::string, FileClass, std::less<>>::const_iterator ConfigClasses::rule_of(std::string_view path) const
{
    for (std::string_view part = path; !rules_.empty();) {
        if (const auto found = rules_.find(part); found != rules_.end()) return found;
        const std::size_t slash = part.rfind('/');
        if (slash == std::string_view::npos) break;
        part = part.substr(0, slash);
    }
    return rules_.end();
}

FileClass ConfigClasses::of(std::string_view path) const
{
    const auto rule = rule_of(path);
    return rule != rules_.end() ? rule->second : default_class(path.substr(0, path.find('/')));
}

std::string ConfigClasses::whole_of(std::string_view path) const
{
    const auto top = path.substr(0, path.find('/'));
    if (top == "sessions") return std::string(path);
    const auto rule = rule_of(path);
    return rule != rules_.end() ? rule->first : std::string(top);
}

bool ConfigClasses::copies_below(std::string_view path) const
{
    if (is_copied(of(path))) return true;
    const std::string beginning = std::string(path) + "/";
    for (auto rule = rules_.lower_bound(beginning); rule != rules_.end() && rule->first.starts_with(beginning); ++rule)
        if (is_copied(rule->second)) return true;
    return false;
}

std::optional<FileClass> ConfigClasses::of_all(std::string_view path) const
{
    if (path.empty()) return std::nullopt;
    const FileClass own = of(path);
    const std::string beginning = std::string(path) + "/";
    for (auto rule = rules_.lower_bound(beginning); rule != rules_.end() && rule->first.starts_with(beginning); ++rule)
        if (rule->second != own) return std::nullopt;
    return own;
}

// What follows from a policy without asking the host.

std::string entry_key(const UserEntry &entry)
{
    return std::string(entry.is_group ? "users.%" : "users.") + entry.name;
}

std::string root_key(const UserEntry &entry, const RootSpec &root)
{
    return entry_key(entry) + ".roots[" + std::to_string(root.index) + "]";
}

const char *to_string(SandboxMethod method)
{
    constexpr std::array<const char *, 5> names = {"systemd", "bwrap", "podman", "docker", "none"};
    return names.at(static_cast<std::size_t>(method));
}

const std::vector<ProviderRule> &routed_providers(const Policy &policy) noexcept
{
    static const std::vector<ProviderRule> none;
    return policy.network.mode == NetworkMode::hosts && policy.network.reaches_providers ? policy.providers : none;
}

bool has_unit(SandboxMethod method) noexcept
{
    return method != SandboxMethod::bwrap;
}

std::string agent_account_name(const Policy &policy, const std::string &user, const std::optional<std::string> &run_as)
{
    if (run_as) return *run_as;
    return policy.agent.accounts == Accounts::per_user ? policy.agent.user + "-" + user : policy.agent.user;
}

std::string agents_home(const std::string &state_dir, const std::string &user)
{
    return state_dir + "/users/" + user + "/home";
}

bool can_be_created(const std::string &account) noexcept
{
    return is_plain_name(account) && account.size() <= creatable_length && account.find('.') == std::string::npos;
}

bool has_agents_name(const Policy &policy, const std::string &name)
{
    if (name == policy.agent.user) return true;
    return policy.agent.accounts == Accounts::per_user && name.starts_with(policy.agent.user + "-") && !policy.people.contains(name);
}

bool is_agent_account(const Policy &policy, const std::string &name)
{
    const auto runs_as_name = [&name](const UserEntry &entry) { return entry.run_as == name; };
    return has_agents_name(policy, name) || std::any_of(policy.users.begin(), policy.users.end(), runs_as_name);
}

// --- The table of the policy's keys, what levels may say them, and looking things up in it.

std::span<const PolicyKey> policy_keys() noexcept
{
    return table();
}

std::vector<const PolicyKey *> policy_keys_below(std::string_view path)
{
    const auto found = keys_by_parent().find(path);
    return found == keys_by_parent().end() ? std::vector<const PolicyKey *>() : found->second;
}

const PolicyKey *find_policy_key(std::string_view path, std::string_view name)
{
    const auto below = keys_by_parent().find(path);
    if (below == keys_by_parent().end()) return nullptr;
    const auto found = std::find_if(below->second.begin(), below->second.end(),
                                    [&](const PolicyKey *key) { return last_part(*key) == name || last_part(*key) == "*"; });
    return found == below->second.end() ? nullptr : *found;
}

std::string_view last_part(const PolicyKey &key) noexcept
{
    return key.path.substr(key.path.rfind('.') + 1); // npos + 1 is 0
}

std::string display_path(const PolicyKey &key)
{
    std::string text(key.path);
    if (const auto root = text.find(".roots.*"); root != std::string::npos) text.replace(root, 8, ".roots[N]");
    for (auto star = text.find('*'); star != std::string::npos; star = text.find('*'))
        text.replace(star, 1, "NAME");
    return text;
}

} // namespace pi_agent
