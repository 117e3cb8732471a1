// The table of the policy's keys, what levels may say them, and what pages say of them.
#include "common/policy/policy_keys.hpp"

#include "common/base/build_settings.hpp"
#include "common/policy/policy.hpp"

#include <deque>
#include <fmt/format.h>

namespace pi_agent {

// The table of the policy's keys, and looking things up in it.

namespace {

// Which keys of the whole policy users and roots may say for their own sessions: the one list behind parser, schema and pages.

// At the level of a user or group, by the same name; each with all keys below it, except those of `never_below`.
constexpr std::string_view of_users = "network providers limits projects settings models keybindings mcp settings_lock env_files "
                                      "toolchains view_paths path devices scratch placement";
constexpr std::string_view never_below = "projects.ownership placement.srun";

// At the level of a root, where `projects` is what it is about; each with all keys below it.
struct OfRoot {
    std::string_view name;
    std::string_view repeats;
};
constexpr OfRoot of_roots[] = {{"network", "network"},
                               {"scope", "projects.scope"},
                               {"protect", "projects.protect"},
                               {"mask", "projects.mask"},
                               {"read_only", "projects.read_only"}};

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
    const char *relation = key.form == ValueForm::document ? "merged over" : "instead of"; // common/policy/policy_levels.hpp
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
