// Reads `users:` and, for each of them, `projects:`.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"
#include "common/policy/policy_env.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/policy_values.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

void read_roots(const PolicyValue &section, UserEntry &entry, Problems &problems)
{
    const auto items = read_items(section, problems);
    if (!items) return;
    if (items->empty()) problems.add(section.where, section.key, "is empty", "name at least one directory, or remove the user");
    for (const auto &item : *items) {
        if (item.node.kind == YamlNode::Kind::null) {
            problems.add(item.where, item.key, "is nothing, or the home directory itself (~)",
                         "name a directory below it, e.g. ~/projects");
            continue;
        }
        const auto text = read_line(item, problems);
        if (!text) continue;
        const auto root = without_trailing_slashes(*text);
        if (const auto problem = problem_of_root(root)) {
            problems.add(item.where, item.key, quote(*text) + " " + problem->text, problem->remedy);
        } else {
            entry.roots.push_back({root, item.where, true, static_cast<std::size_t>(&item - items->data())});
        }
    }
}

void read_config_directory(const PolicyValue &value, UserEntry &entry, Problems &problems)
{
    const auto text = read_line(value, problems);
    if (!text) return;
    const auto path = without_trailing_slashes(*text);
    if (const auto problem = problem_of_config_directory(path)) {
        problems.add(value.where, value.key, quote(*text) + " " + problem->text, problem->remedy);
    } else {
        entry.config = path;
        entry.config_where = value.where;
    }
}

void read_ssh(const PolicyValue &section, UserEntry &entry, Problems &problems)
{
    read_section(section,
                 {{"key",
                   [&](const PolicyValue &value) {
                       const auto path = read_line(value, problems);
                       if (!path) return;
                       if (const auto problem = problem_of_host_file(*path))
                           problems.add(value.where, value.key, quote(*path) + " " + problem->text, problem->remedy);
                       else
                           entry.ssh_key = path, entry.ssh_key_where = value.where;
                   }}},
                 problems);
    if (!entry.ssh_key && section.node.kind == YamlNode::Kind::mapping && section.node.entries.empty())
        problems.add(section.where, section.key, "names no key", "say which, e.g. {key: .ssh/id_agent}, or remove it");
}

UserEntry read_user(const PolicyValue &section, const YamlEntry &yaml, Problems &problems)
{
    UserEntry entry;
    entry.is_group = !yaml.key.empty() && yaml.key.front() == '%';
    entry.name = entry.is_group ? yaml.key.substr(1) : yaml.key;
    entry.where = yaml.where;
    if (!is_plain_name(entry.name) && defence_is_on("plain-names")) {
        problems.add(yaml.where, section.key, quote(yaml.key) + " is not the plain name of a user, or of a group after '%'",
                     "use at most 32 of a-z, 0-9, '_', '-' and '.', beginning with a letter or '_'");
    }
    bool has_roots = section.node.kind != YamlNode::Kind::mapping; // then the wrong type is what to report
    read_section(section,
                 {{"roots",
                   [&](const PolicyValue &value) {
                       has_roots = true;
                       read_roots(value, entry, problems);
                   }},
                  {"config", [&](const PolicyValue &value) { read_config_directory(value, entry, problems); }},
                  {"run_as",
                   [&](const PolicyValue &value) {
                       entry.run_as = read_name(value, problems);
                       entry.run_as_where = value.where;
                   }},
                  {"ssh", [&](const PolicyValue &value) { read_ssh(value, entry, problems); }},
                  {"env", [&](const PolicyValue &value) { read_env(value, entry.env, entry.env_where, problems); }}},
                 problems);
    if (!has_roots) problems.add(yaml.where, section.key, "has no roots", "add 'roots' with at least one directory, or remove the user");
    return entry;
}

} // namespace

void read_users(const PolicyValue &section, Policy &policy, Problems &problems)
{
    policy.users_where = section.where;
    const auto entries = read_entries(section, problems);
    if (!entries) return;
    for (std::size_t index = 0; index < entries->size(); ++index) {
        policy.users.push_back(read_user((*entries)[index], section.node.entries[index], problems));
    }
}

namespace {

void read_protect(const PolicyValue &value, ProjectsPolicy &projects, Problems &problems)
{
    if (value.node.kind == YamlNode::Kind::scalar) {
        if (read_choice(value, problems)) projects.protect.reset();
        return;
    }
    projects.protect = read_paths(value, problem_of_protected_path, problems);
    for (auto &path : *projects.protect) {
        path.is_directory = path.path.back() == '/';
        if (path.is_directory) path.path.pop_back();
    }
}

} // namespace

void read_projects(const PolicyValue &section, Policy &policy, Problems &problems)
{
    auto &projects = policy.projects;
    read_section(section,
                 {{"paths",
                   [&](const PolicyValue &value) {
                       if (const auto choice = read_choice(value, problems))
                           projects.paths = *choice == "alias" ? ProjectPaths::alias : ProjectPaths::host;
                   }},
                  {"scope",
                   [&](const PolicyValue &value) {
                       if (const auto choice = read_choice(value, problems))
                           projects.scope = *choice == "project" ? ProjectScope::project : ProjectScope::root;
                   }},
                  {"ownership", [&](const PolicyValue &value) { read_choice(value, problems); }},
                  {"protect", [&](const PolicyValue &value) { read_protect(value, projects, problems); }},
                  {"mask", [&](const PolicyValue &value) { projects.mask = read_paths(value, problem_of_project_path, problems); }},
                  {"aftermath", [&](const PolicyValue &value) { projects.aftermath = read_bool(value, problems).value_or(true); }}},
                 problems);
}

} // namespace pi_agent
