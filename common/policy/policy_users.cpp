// Reads `users:`, with the roots of each.
#include "common/policy/policy_sections.hpp"

#include "common/host/account.hpp"
#include "common/policy/policy_env.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

void add_root(const PolicyValue &value, RootSpec root, UserEntry &entry)
{
    const auto text = read_path(value, [](const std::string &path) { return problem_of_root(without_trailing_slashes(path)); });
    if (!text) return;
    root.text = without_trailing_slashes(*text);
    root.where = value.where;
    entry.roots.push_back(std::move(root));
}

// A mapping: the directory, and what holds for sessions in it.
void read_root(const PolicyValue &item, const RootSpec &root, UserEntry &entry)
{
    const PolicyValue section{item.node, item.problems, item.key, item.where, find_policy_key(item.entry->path, "")};
    const auto rules = std::make_shared<Rules>();
    const std::size_t before = entry.roots.size();
    bool has_path = false;
    auto readers = level_readers(*rules, Level::root);
    readers.push_back({"path", [&](const PolicyValue &value) {
                           has_path = true;
                           add_root(value, root, entry);
                       }});
    read_section(section, readers);
    if (entry.roots.size() > before && !rules->places.empty()) entry.roots.back().rules = rules;
    if (!has_path) section.report("has no path", "say which directory it is about, e.g. {path: ~/projects, network: none}");
}

void read_roots(const PolicyValue &section, UserEntry &entry)
{
    const auto items = read_items(section);
    if (!items) return;
    if (items->empty()) section.report("is empty", "name at least one directory, or remove the user");
    for (const auto &item : *items) {
        const auto index = static_cast<std::size_t>(&item - items->data());
        if (item.is(YamlNode::Kind::null))
            item.report("is nothing, or the home directory itself (~)", "name a directory below it, e.g. ~/projects");
        else if (item.is(YamlNode::Kind::mapping))
            read_root(item, {{}, {}, true, index}, entry);
        else
            add_root(item, {{}, {}, true, index}, entry);
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
    const auto rules = std::make_shared<Rules>();
    std::vector<KeyRule> readers = level_readers(*rules, Level::user);
    std::vector<KeyRule> own = {{"roots", read_own_roots},
                                {"readable", [&](const PolicyValue &value) { read_readable(value, *rules); }},
                                {"config", read_config},
                                {"run_as", with_place(entry.run_as_where, into(entry.run_as, read_name))},
                                {"ssh", [&](const PolicyValue &value) { read_key(value, entry.ssh_key, entry.ssh_key_where); }},
                                {"signing", [&](const PolicyValue &value) { read_key(value, entry.signing_key, entry.signing_key_where); }},
                                {"env", [&](const PolicyValue &value) { read_env(value, entry.env, entry.env_where); }}};
    for (auto &reader : own)
        readers.push_back(std::move(reader));
    read_section(section, readers);
    if (!rules->places.empty()) entry.rules = rules;
    if (!has_roots) section.at_its_name().report("has no roots", "add 'roots' with at least one directory, or remove the user");
    return entry;
}

} // namespace

void read_users(const PolicyValue &section, Policy &policy)
{
    policy.users_where = section.where;
    if (const auto entries = read_entries(section))
        for (const auto &entry : *entries)
            policy.users.push_back(read_user(entry));
}

} // namespace pi_agent
