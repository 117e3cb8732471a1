// Reads `toolchains:` and a user's `readable:`, and finds what of homes a session then shows.
#include "common/policy/policy_sections.hpp"

#include "common/base/text.hpp"
#include "common/policy/toolchains.hpp"

#include <algorithm>
#include <iterator>

namespace pi_agent {

namespace {

using Defaults = const std::vector<std::string> &(*)();

constexpr std::size_t list_limit = 64; // each costs mounts at every start

void add_defaults(HomeDirectories &directories, Defaults defaults)
{
    for (const auto &path : defaults())
        directories.paths.push_back({path, {}});
}

// A word instead of the list, or among its paths.
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

HomeDirectories read_directories(const PolicyValue &value, Defaults defaults)
{
    HomeDirectories directories;
    if (value.is(YamlNode::Kind::scalar)) {
        directories.best_effort = read_choice(value).has_value() && value.node.text == "best_effort";
        add_defaults(directories, defaults);
        return directories;
    }
    const auto items = read_items(value);
    if (!items) return directories;
    if (items->size() > list_limit) {
        value.report("more than " + std::to_string(list_limit) + " directories", "name those that are used");
        return directories;
    }
    for (const auto &item : *items) {
        const auto text = read_line(item);
        if (!text || read_word(*text, directories, defaults)) continue;
        const std::string path = without_trailing_slashes(*text);
        if (const auto problem = problem_of_home_directory(path))
            item.refuse(path, *problem);
        else
            directories.paths.push_back({path.substr(2), item.where});
    }
    return directories;
}

bool share_place(const PolicyPath &one, const PolicyPath &other)
{
    const std::string inside = place_in_agent_home(one.path);
    const std::string other_inside = place_in_agent_home(other.path);
    return are_nested(one.path, other.path) || (!inside.empty() && !other_inside.empty() && are_nested(inside, other_inside));
}

bool is_of_policy(const PolicyPath &path)
{
    return path.where.line > 0; // a default has no place
}

// A path that the policy names replaces the defaults that it overlaps, because the default lists grow.
void drop_replaced_defaults(ToolchainsPolicy &toolchains)
{
    std::vector<PolicyPath> named;
    for (const auto *list : {&toolchains.readable, &toolchains.caches})
        std::copy_if(list->paths.begin(), list->paths.end(), std::back_inserter(named), is_of_policy);
    for (auto *list : {&toolchains.readable, &toolchains.caches})
        std::erase_if(list->paths, [&](const PolicyPath &path) {
            return !is_of_policy(path) &&
                   std::any_of(named.begin(), named.end(), [&](const PolicyPath &other) { return share_place(path, other); });
        });
}

// Two paths that the policy names must not cover or hold each other.
void check_apart(const ToolchainsPolicy &toolchains, const std::string &key, Problems &problems)
{
    std::vector<PolicyPath> all = toolchains.readable.paths;
    all.insert(all.end(), toolchains.caches.paths.begin(), toolchains.caches.paths.end());
    for (std::size_t second = 1; second < all.size(); ++second) {
        if (!is_of_policy(all[second])) continue;
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(second);
        const auto first =
            std::find_if(all.begin(), end, [&](const PolicyPath &path) { return is_of_policy(path) && share_place(path, all[second]); });
        if (first == end) continue;
        problems.add(all[second].where, key,
                     quote("~/" + all[second].path) + " and " + quote("~/" + first->path) + " are both listed for the same place",
                     "name one of them");
    }
}

// The section or list that says it; the innermost one, if levels say different parts.
std::string key_that_says(const Rules &rules)
{
    for (const char *key : {"readable", "toolchains.caches", "toolchains.readable"})
        if (const auto place = rules.places.find(key); place != rules.places.end()) {
            const std::string &said = place->second.key;
            return said.ends_with("readable") && said.find("toolchains") == std::string::npos ? said : said.substr(0, said.rfind('.'));
        }
    return "toolchains";
}

HomeDirectories default_of(Defaults defaults)
{
    HomeDirectories directories;
    add_defaults(directories, defaults);
    return directories;
}

} // namespace

void read_toolchains(const PolicyValue &section, Rules &rules)
{
    const auto read = [](std::optional<HomeDirectories> &directories, Defaults defaults) -> Reader {
        return [&directories, defaults](const PolicyValue &value) { directories = read_directories(value, defaults); };
    };
    read_section(section, {{"readable", with_place(rules, "toolchains.readable", read(rules.readable, default_readable))},
                           {"caches", with_place(rules, "toolchains.caches", read(rules.caches, default_caches))}});
}

void read_readable(const PolicyValue &value, Rules &rules)
{
    rules.places["readable"] = {value.where, value.key};
    auto &paths = rules.own_readable.emplace();
    const auto items = read_items(value);
    if (!items) return;
    if (items->size() > list_limit)
        return value.report("more than " + std::to_string(list_limit) + " directories", "name one that holds them");
    for (const auto &item : *items) {
        const auto text = read_line(item);
        if (!text) continue;
        const std::string path = without_trailing_slashes(*text);
        if (auto problem = problem_of_home_directory(path)) {
            if (path.starts_with("~/")) problem->remedy = "name a directory that holds nothing but data";
            item.refuse(path, *problem);
        } else {
            paths.push_back({path.substr(2), item.where});
        }
    }
}

ToolchainsPolicy settle_toolchains(const Rules &rules, Problems &problems)
{
    ToolchainsPolicy toolchains{rules.readable.value_or(default_of(default_readable)), rules.caches.value_or(default_of(default_caches))};
    auto &readable = toolchains.readable.paths;
    if (rules.own_readable) readable.insert(readable.end(), rules.own_readable->begin(), rules.own_readable->end());
    drop_replaced_defaults(toolchains);
    const auto masked =
        std::stable_partition(readable.begin(), readable.end(), [](const auto &path) { return masked_in(path.path).empty(); });
    std::move(masked, readable.end(), std::back_inserter(toolchains.caches.paths));
    readable.erase(masked, readable.end());
    check_apart(toolchains, key_that_says(rules), problems);
    return toolchains;
}

} // namespace pi_agent
