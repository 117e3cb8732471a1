// Reading the section `toolchains` of a policy.
#include "common/policy/policy_sections.hpp"

#include "common/policy/toolchains.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

using Defaults = const std::vector<std::string> &(*)();

constexpr std::size_t list_limit = 64; // each costs mounts at every start

void add_defaults(HomeDirectories &directories, Defaults defaults)
{
    for (const auto &path : defaults())
        directories.paths.push_back({path, {}});
}

// A word in the place of the list, or among its paths.
bool read_word(const std::string &word, HomeDirectories &directories, Defaults defaults)
{
    if (word == "default")
        add_defaults(directories, defaults);
    else if (word == "best_effort")
        directories.best_effort = true;
    else
        return false;
    return true;
}

HomeDirectories read_directories(const PolicyValue &value, Defaults defaults, Problems &problems)
{
    HomeDirectories directories;
    if (value.node.kind == YamlNode::Kind::scalar) {
        const auto word = read_choice(value, problems);
        directories.best_effort = word && *word == "best_effort";
        add_defaults(directories, defaults);
        return directories;
    }
    const auto items = read_items(value, problems);
    if (!items) return directories;
    if (items->size() > list_limit) {
        problems.add(value.where, value.key, "more than " + std::to_string(list_limit) + " directories", "name those that are used");
        return directories;
    }
    for (const auto &item : *items) {
        const auto text = read_line(item, problems);
        if (!text || read_word(*text, directories, defaults)) continue;
        const std::string path = without_trailing_slashes(*text);
        if (const auto problem = problem_of_home_directory(path))
            problems.add(item.where, item.key, quote(path) + " " + problem->text, problem->remedy);
        else
            directories.paths.push_back({path.substr(2), item.where});
    }
    return directories;
}

bool overlap(const std::string &one, const std::string &other)
{
    return is_within(one, other) || is_within(other, one);
}

// One would lie over the other, or hold it.
void check_apart(const ToolchainsPolicy &toolchains, const std::string &key, Problems &problems)
{
    std::vector<PolicyPath> all = toolchains.readable.paths;
    all.insert(all.end(), toolchains.caches.paths.begin(), toolchains.caches.paths.end());
    for (std::size_t second = 1; second < all.size(); ++second) {
        const auto first = std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(second), [&](const PolicyPath &path) {
            return overlap(path.path, all[second].path) || overlap(place_in_agent_home(path.path), place_in_agent_home(all[second].path));
        });
        if (first == all.begin() + static_cast<std::ptrdiff_t>(second)) continue;
        const PolicyPath &told = all[second].where.line > 0 ? all[second] : *first; // a default has no place
        const PolicyPath &other = &told == &*first ? all[second] : *first;
        problems.add(told.where, key,
                     quote("~/" + told.path) + " and " + quote("~/" + other.path) + " are listed, and lie in the same place",
                     "name one of them; a list without 'default' in it replaces the default one");
    }
}

} // namespace

ToolchainsPolicy default_toolchains()
{
    ToolchainsPolicy toolchains;
    add_defaults(toolchains.readable, default_readable);
    add_defaults(toolchains.caches, default_caches);
    return toolchains;
}

void read_toolchains(const PolicyValue &section, Policy &policy, Problems &problems)
{
    auto &toolchains = policy.toolchains;
    read_section(
        section,
        {{"readable", [&](const PolicyValue &value) { toolchains.readable = read_directories(value, default_readable, problems); }},
         {"caches", [&](const PolicyValue &value) { toolchains.caches = read_directories(value, default_caches, problems); }}},
        problems);
    check_apart(toolchains, section.key, problems);
}

} // namespace pi_agent
