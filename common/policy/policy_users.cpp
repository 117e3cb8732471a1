// Reads `users:`, and what of their homes and projects sessions see: `projects:` and `toolchains:`.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"
#include "common/policy/policy_env.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/toolchains.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <iterator>

namespace pi_agent {

namespace {

void read_roots(const PolicyValue &section, UserEntry &entry)
{
    const auto items = read_items(section);
    if (!items) return;
    if (items->empty()) section.report("is empty", "name at least one directory, or remove the user");
    for (const auto &item : *items) {
        if (item.is(YamlNode::Kind::null)) {
            item.report("is nothing, or the home directory itself (~)", "name a directory below it, e.g. ~/projects");
            continue;
        }
        const auto text = read_path(item, [](const std::string &root) { return problem_of_root(without_trailing_slashes(root)); });
        if (text)
            entry.roots.push_back({without_trailing_slashes(*text), item.where, true, static_cast<std::size_t>(&item - items->data())});
    }
}

void read_key(const PolicyValue &section, std::optional<std::string> &key, Position &where)
{
    const auto read_file = [&](const PolicyValue &value) {
        key = read_path(value, problem_of_host_file);
        if (key) where = value.where;
    };
    read_section(section, {{"key", read_file}});
    if (!key && section.is(YamlNode::Kind::mapping) && section.node.entries.empty())
        section.report("names no key", "say which, e.g. {key: .ssh/id_agent}, or remove it");
}

UserEntry read_user(const PolicyValue &section)
{
    UserEntry entry;
    const std::string &key = section.yaml->key;
    entry.is_group = key.starts_with('%');
    entry.name = key.substr(entry.is_group ? 1 : 0);
    entry.where = section.yaml->where;
    if (!is_account_name(entry.name) && defence_is_on("plain-names"))
        section.at_its_name().report(
            quote(key) + " is not a name of a user, or of a group after '%'",
            "use letters, digits, spaces and _ - . @ + ' \\, beginning with a letter, a digit or '_', and not a number");
    bool has_roots = !section.is(YamlNode::Kind::mapping); // then the wrong type is what to report
    const auto read_own_roots = [&](const PolicyValue &value) {
        has_roots = true;
        read_roots(value, entry);
    };
    const auto read_config = [&](const PolicyValue &value) {
        const auto text =
            read_path(value, [](const std::string &path) { return problem_of_config_directory(without_trailing_slashes(path)); });
        if (!text) return;
        entry.config = without_trailing_slashes(*text);
        entry.config_where = value.where;
    };
    read_section(section, {{"roots", read_own_roots},
                           {"config", read_config},
                           {"run_as", with_place(entry.run_as_where, into(entry.run_as, read_name))},
                           {"ssh", [&](const PolicyValue &value) { read_key(value, entry.ssh_key, entry.ssh_key_where); }},
                           {"signing", [&](const PolicyValue &value) { read_key(value, entry.signing_key, entry.signing_key_where); }},
                           {"env", [&](const PolicyValue &value) { read_env(value, entry.env, entry.env_where); }}});
    if (!has_roots) section.at_its_name().report("has no roots", "add 'roots' with at least one directory, or remove the user");
    return entry;
}

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

bool overlap(const std::string &one, const std::string &other)
{
    return is_within(one, other) || is_within(other, one);
}

bool share_place(const PolicyPath &one, const PolicyPath &other)
{
    const std::string inside = place_in_agent_home(one.path);
    const std::string other_inside = place_in_agent_home(other.path);
    return overlap(one.path, other.path) || (!inside.empty() && !other_inside.empty() && overlap(inside, other_inside));
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

} // namespace

void read_users(const PolicyValue &section, Policy &policy)
{
    policy.users_where = section.where;
    if (const auto entries = read_entries(section))
        for (const auto &entry : *entries)
            policy.users.push_back(read_user(entry));
}

void read_projects(const PolicyValue &section, Policy &policy)
{
    auto &projects = policy.projects;
    const auto read_protect = [&](const PolicyValue &value) {
        if (value.is(YamlNode::Kind::scalar)) {
            if (read_choice(value)) projects.protect.reset();
            return;
        }
        projects.protect = read_paths(value, problem_of_protected_path);
        for (auto &path : *projects.protect) {
            path.is_directory = path.path.back() == '/';
            if (path.is_directory) path.path.pop_back();
        }
    };
    read_section(section, {{"paths", into_choice(projects.paths, ProjectPaths::host)},
                           {"scope", into_choice(projects.scope, ProjectScope::root)},
                           {"ownership", into_choice(projects.ownership, ProjectOwnership::idmap)},
                           {"protect", read_protect},
                           {"mask", into_paths(projects.mask, problem_of_project_path)},
                           {"aftermath", into(projects.aftermath, read_bool)}});
}

ToolchainsPolicy default_toolchains()
{
    ToolchainsPolicy toolchains;
    add_defaults(toolchains.readable, default_readable);
    add_defaults(toolchains.caches, default_caches);
    return toolchains;
}

void read_toolchains(const PolicyValue &section, Policy &policy)
{
    auto &toolchains = policy.toolchains;
    read_section(section, {{"readable", [&](const PolicyValue &value) { toolchains.readable = read_directories(value, default_readable); }},
                           {"caches", [&](const PolicyValue &value) { toolchains.caches = read_directories(value, default_caches); }}});
    drop_replaced_defaults(toolchains);
    auto &readable = toolchains.readable.paths;
    const auto masked =
        std::stable_partition(readable.begin(), readable.end(), [](const auto &path) { return masked_in(path.path).empty(); });
    std::move(masked, readable.end(), std::back_inserter(toolchains.caches.paths));
    readable.erase(masked, readable.end());
    check_apart(toolchains, section.key, section.problems);
}

} // namespace pi_agent
