// The sections of the policy, each a table of its keys: levels, users and their roots.
#include "common/policy/policy_sections.hpp"

#include "common/base/build_settings.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy_levels.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/policy_values.hpp"
#include "common/policy/session_calls.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>

namespace pi_agent {

// The sections of the policy, each a table of its keys.

namespace {

void read_agent(const PolicyValue &section, Policy &policy)
{
    auto &agent = policy.agent;
    agent.where = agent.user_where = agent.state_dir_where = section.where;
    const auto read_binary = [&](const PolicyValue &value) {
        const auto path = read_path(value, [&](const std::string &text) {
            agent.binary_where = value.where;
            return problem_of_binary(text);
        });
        agent.binary = path.value_or(agent.binary);
    };
    const auto read_state_dir = [&](const PolicyValue &value) {
        agent.state_dir = read_path(value, problem_of_state_dir).value_or(agent.state_dir);
    };
    read_section(section, {{"binary", read_binary},
                           {"user", with_place(agent.user_where, into(agent.user, read_name))},
                           {"group", into(agent.group, read_name)},
                           {"accounts", into_choice(agent.accounts, Accounts::shared)},
                           {"create_user", into(agent.create_user, read_bool)},
                           {"binary_name", into(agent.binary_name, read_name)},
                           {"state_dir", with_place(agent.state_dir_where, read_state_dir)}});
}

void read_wrapper(const PolicyValue &section, Policy &policy)
{
    auto &wrapper = policy.wrapper;
    wrapper.where = wrapper.command_name_where = section.where;
    read_section(section, {{"enable", with_place(wrapper.where, into(wrapper.enable, read_bool))},
                           {"command_name", with_place(wrapper.command_name_where, into(wrapper.command_name, read_name))},
                           {"hide_direct_binary", into(wrapper.hide_direct_binary, read_bool)},
                           {"clipboard", into(wrapper.clipboard, read_bool)}});
}

constexpr std::size_t image_name_limit = 255;

// What fits into a URL of docker's API and cannot be an option on its command line; docker itself is stricter.
bool is_image_name(const std::string &text)
{
    constexpr const char *alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    const auto is_first = [](char byte) { return byte != '.' && byte != '-' && byte != '/' && byte != ':' && byte != '@'; };
    return !text.empty() && text.size() <= image_name_limit && is_first(text.front()) && text.find("..") == std::string::npos &&
           text.find_first_not_of(alphabet) == std::string::npos;
}

void read_sandbox(const PolicyValue &section, Policy &policy)
{
    auto &sandbox = policy.sandbox;
    sandbox.where = section.where;
    const auto read_image = [&](const PolicyValue &value) {
        const auto name = read_line(value);
        if (!name) return;
        if (is_image_name(*name))
            sandbox.image = *name;
        else
            value.report("is not the name of an image", "write one as 'docker image ls' or 'podman image ls' does, such as debian:12");
    };
    read_section(section, {{"method", with_place(sandbox.where, into_choice(sandbox.method, SandboxMethod::systemd))},
                           {"image", with_place(sandbox.image_where, read_image)}});
}

void read_hardening(const PolicyValue &section, Policy &policy)
{
    auto &calls = policy.calls;
    const auto read_families = [&](const PolicyValue &value) {
        calls.families = read_paths(value, problem_of_address_family);
        if (value.is(YamlNode::Kind::sequence) && value.node.items.empty())
            value.report("is empty", "name at least one of unix, inet, inet6, netlink, or remove the key");
    };
    read_section(section, {{"tracing", into_choice(policy.tracing, Tracing::automatic)},
                           {"deny_system_calls", into_paths(calls.denied, problem_of_denied_call)},
                           {"allow_system_calls", into_paths(calls.allowed, problem_of_allowed_call)},
                           {"address_families", read_families}});
}

void read_host_env_files(const PolicyValue &section, Policy &policy)
{
    policy.host_env_files.clear();
    policy.host_env_files_where = section.where;
    for (const auto &file : read_paths(section, problem_of_host_file))
        policy.host_env_files.push_back(file.path);
}

void read_classes(const PolicyValue &section, Policy &policy)
{
    const auto entries = read_entries(section);
    if (!entries) return;
    for (const auto &value : *entries) {
        const auto path = without_trailing_slashes(value.yaml->key);
        if (const auto problem = problem_of_config_path(path)) {
            value.at_its_name().refuse(path, *problem);
            continue;
        }
        const bool is_class = read_choice(value).has_value();
        if (policy.config_classes.rules().contains(path))
            value.at_its_name().report("given twice, with and without a slash at its end", "keep one of them");
        else if (is_class)
            policy.config_classes.set(path, *parse_file_class(value.node.text));
    }
}

// What of a root other keys say.
void settle_root(RootSpec &root, const UserEntry &entry, const Policy &policy)
{
    root.at_own_path = rules_of(entry.rules).paths.value_or(policy.projects.paths) == ProjectPaths::host;
    if (policy.agent.state_dir != default_state_dir) root.state_dir = policy.agent.state_dir;
}

} // namespace

Policy read_policy(const YamlNode &root, Problems &problems)
{
    Policy policy;
    policy.wrapper.command_name = build::command_name;
    policy.agent.where = policy.agent.binary_where = policy.agent.user_where = policy.agent.state_dir_where = {root.where.file};
    policy.wrapper.where = policy.wrapper.command_name_where = policy.sandbox.where = policy.users_where = {root.where.file};
    const auto section = [&](auto read) -> Reader { return [&policy, read](const PolicyValue &value) { read(value, policy); }; };
    const Reader read_config = [&](const PolicyValue &value) { read_section(value, {{"classes", section(read_classes)}}); };
    Rules said;
    std::vector<KeyRule> readers = level_readers(said, Level::policy);
    for (KeyRule reader : std::vector<KeyRule>{{"version", [](const PolicyValue & /*checked before*/) {}},
                                               {"agent", section(read_agent)},
                                               {"wrapper", section(read_wrapper)},
                                               {"sandbox", section(read_sandbox)},
                                               {"users", section(read_users)},
                                               {"config", read_config},
                                               {"git_identity", into(policy.git_identity, read_bool)},
                                               {"box_notes", into(policy.box_notes, read_bool)},
                                               {"env", [&](const PolicyValue &value) { read_env(value, policy.env, policy.env_where); }},
                                               {"host_env_files", section(read_host_env_files)},
                                               {"view", into_choice(policy.view, View::minimal)},
                                               {"hardening", section(read_hardening)}})
        readers.push_back(std::move(reader));
    read_section({root, problems, "", root.where}, readers);
    lay_over(policy, said, problems);
    for (auto &entry : policy.users)
        for (auto &project_root : entry.roots)
            settle_root(project_root, entry, policy);
    return policy;
}

void read_version(const YamlNode &root, bool required, Problems &problems)
{
    const auto say = fmt::format("begin the policy with 'version: {}'", policy_version);
    for (const auto &entry : root.entries) {
        if (entry.key != "version") continue;
        const auto value = value_of(entry, {root, problems, "", root.where});
        const auto &text = value.node.text;
        const bool number = value.means(ScalarMeaning::integer);
        if (number && text == std::to_string(policy_version)) return;
        if (number && text.front() != '-' && text != "0")
            value.report("is " + text.substr(0, 20) + ", which is newer than this pi-agent (" + build::version + ")",
                         fmt::format("update pi-agent, or write the policy in version {}", policy_version));
        else
            value.report(fmt::format("must be the number {}, found {}", policy_version, describe(value.node)), say);
        return;
    }
    if (required) problems.add({root.where.file}, "version", "missing", say);
}

// Reads `users:`, with the roots of each.

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

// Reads what a level of the policy says: the keys that the whole policy, users and roots have in common.

namespace {

void read_protect(const PolicyValue &value, Rules &rules)
{
    if (value.is(YamlNode::Kind::scalar)) {
        if (read_choice(value)) rules.protect = Protection();
        return;
    }
    auto paths = read_paths(value, problem_of_protected_path);
    for (auto &path : paths) {
        path.is_directory = path.path.back() == '/';
        if (path.is_directory) path.path.pop_back();
    }
    rules.protect = std::move(paths);
}

// The keys of `projects` that a root has, too, where it names them without the section.
std::vector<KeyRule> project_readers(Rules &rules)
{
    return {{"scope", with_place(rules, "projects.scope", into_choice(rules.scope, ProjectScope::root))},
            {"protect", with_place(rules, "projects.protect", [&](const PolicyValue &value) { read_protect(value, rules); })},
            {"mask", with_place(rules, "projects.mask", into_paths(rules.mask, problem_of_project_path))},
            {"read_only", with_place(rules, "projects.read_only", into(rules.read_only, read_bool))}};
}

void read_projects(const PolicyValue &section, Rules &rules, Level level)
{
    auto readers = project_readers(rules);
    readers.push_back({"paths", with_place(rules, "projects.paths", into_choice(rules.paths, ProjectPaths::host))});
    readers.push_back({"aftermath", with_place(rules, "projects.aftermath", into(rules.aftermath, read_bool))});
    if (level == Level::policy)
        readers.push_back({"ownership", with_place(rules, "projects.ownership", into_choice(rules.ownership, ProjectOwnership::idmap))});
    read_section(section, readers);
}

void read_placement(const PolicyValue &section, Rules &rules, Level level)
{
    auto &placement = rules.placement;
    const auto reader = [&rules](const char *key, std::optional<PolicyWord> &word, const PathRule &problem_of) {
        return with_place(rules, key, [&word, problem_of](const PolicyValue &value) {
            if (auto text = read_path(value, problem_of)) word = PolicyWord{std::move(*text), value.where};
        });
    };
    std::vector<KeyRule> readers = {{"engine", with_place(rules, "placement.engine", into_choice(placement.engine, PlacementEngine::none))},
                                    {"partition", reader("placement.partition", placement.partition, problem_of_job_word)},
                                    {"account", reader("placement.account", placement.account, problem_of_job_word)},
                                    {"qos", reader("placement.qos", placement.qos, problem_of_job_word)},
                                    {"constraint", reader("placement.constraint", placement.constraint, problem_of_job_word)}};
    if (level == Level::policy) readers.push_back({"srun", reader("placement.srun", placement.srun, problem_of_srun)});
    read_section(section, readers);
}

} // namespace

std::vector<KeyRule> level_readers(Rules &rules, Level level)
{
    const KeyRule network{"network", with_place(rules, "network", into(rules.network, read_network))};
    if (level == Level::root) {
        auto readers = project_readers(rules);
        readers.push_back(network);
        return readers;
    }
    const auto document = [&rules](const char *key) -> KeyRule {
        return {key, with_place(rules, key, [&rules, key](const PolicyValue &value) {
                    if (read_entries(value)) rules.documents[std::string(key) + ".json"] = read_json_text(value);
                })};
    };
    const auto section = [&rules](auto read) -> Reader { return [&rules, read](const PolicyValue &value) { read(value, rules); }; };
    return {network,
            {"providers", with_place(rules, "providers", into(rules.providers, read_providers))},
            {"projects", [&rules, level](const PolicyValue &value) { read_projects(value, rules, level); }},
            document("settings"),
            document("models"),
            document("keybindings"),
            document("mcp"),
            {"settings_lock", with_place(rules, "settings_lock", into(rules.settings_lock, read_bool))},
            {"env_files", with_place(rules, "env_files", into_paths(rules.env_files, problem_of_managed_file))},
            {"toolchains", section(read_toolchains)},
            {"view_paths", with_place(rules, "view_paths", into_paths(rules.view_paths, problem_of_view_path))},
            {"path", with_place(rules, "path", into_paths(rules.path, problem_of_program_directory))},
            {"devices", with_place(rules, "devices", into_paths(rules.devices, problem_of_device))},
            {"scratch", with_place(rules, "scratch", into_choice(rules.scratch, ScratchKind::disk))},
            {"limits", section(read_limits)},
            {"placement", [&rules, level](const PolicyValue &value) { read_placement(value, rules, level); }}};
}

} // namespace pi_agent
