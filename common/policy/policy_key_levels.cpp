// Which keys of the whole policy users and roots may say for their own sessions: the one list behind parser, schema and pages.
#include "common/policy/policy_keys.hpp"

#include "common/base/text.hpp"

#include <deque>
#include <fmt/format.h>

namespace pi_agent {

namespace {

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

bool is_of_users(std::string_view path)
{
    return has_word(of_users, path.substr(0, path.find('.'))) && !has_word(never_below, path);
}

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

} // namespace

std::vector<PolicyKey> with_levels(std::span<const PolicyKey> keys)
{
    std::vector<PolicyKey> all(keys.begin(), keys.end());
    for (const auto &key : keys)
        if (is_of_users(key.path)) all.push_back(at_level(key, fmt::format("users.*.{}", key.path), "the sessions of this user or group"));
    for (const auto &[name, repeats] : of_roots)
        for (const auto &key : keys)
            if (key.path == repeats || key.path.starts_with(fmt::format("{}.", repeats)))
                all.push_back(at_level(key, fmt::format("users.*.roots.*.{}{}", name, key.path.substr(repeats.size())),
                                       "sessions in this directory"));
    return all;
}

} // namespace pi_agent
