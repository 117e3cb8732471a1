// The sections of the policy, each a table of its keys: levels, users and their roots.
#include "common/policy/policy_sections.hpp"

#include "common/base/build_settings.hpp"
#include "common/host/account.hpp"
#include "common/seams/seams.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

void read_agent(const PolicyValue &section, Policy &policy)
{
    auto &agent = policy.agent;
    agent.where = agent.user_where = agent.state_dir_where = section.where;
    const auto path_into = [](std::string &path, const PathRule &rule) -> Reader {
        return [&path, rule](const PolicyValue &value) { path = read_path(value, rule).value_or(path); };
    };
    const auto read_accounts = [&](const PolicyValue &value) {
        if (const auto choice = read_choice(value)) agent.accounts = *choice == 0 ? Accounts::shared : Accounts::per_user;
    };
    read_section(section, {{"binary", with_place(agent.binary_where, path_into(agent.binary, problem_of_binary))},
                           {"user", with_place(agent.user_where, into(agent.user, read_name))},
                           {"group", into(agent.group, read_name)},
                           {"accounts", read_accounts},
                           {"create_user", into(agent.create_user, read_bool)},
                           {"binary_name", into(agent.binary_name, read_name)},
                           {"state_dir", with_place(agent.state_dir_where, path_into(agent.state_dir, problem_of_state_dir))}});
}

void read_wrapper(const PolicyValue &section, Policy &policy, const Reader &of_levels)
{
    auto &wrapper = policy.wrapper;
    wrapper.where = wrapper.command_name_where = section.where;
    read_section(section,
                 {{"enable", with_place(wrapper.where, into(wrapper.enable, read_bool))},
                  {"command_name", with_place(wrapper.command_name_where, into(wrapper.command_name, read_name))},
                  {"hide_direct_binary", into(wrapper.hide_direct_binary, read_bool)},
                  {"clipboard", into(wrapper.clipboard, read_bool)}},
                 of_levels);
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
    read_section(section, {{"method", with_place(sandbox.where, into(sandbox.method, read_choice_of<SandboxMethod>))},
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
    read_section(section, {{"tracing", into(policy.tracing, read_choice_of<Tracing>)},
                           {"deny_system_calls", into(calls.denied, read_paths_by<problem_of_denied_call>)},
                           {"allow_system_calls", into(calls.allowed, read_paths_by<problem_of_allowed_call>)},
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
        const auto file_class = read_choice_of<FileClass>(value);
        if (policy.config_classes.rules().contains(path))
            value.at_its_name().report("given twice, with and without a slash at its end", "keep one of them");
        else if (file_class)
            policy.config_classes.set(path, *file_class);
    }
}

template <typename Number>
nlohmann::json read_number(const PolicyValue &value)
{
    if (const auto number = to_number<Number>(value.node.text)) return *number;
    value.report("the number " + value.node.text.substr(0, 40) + " is too large to be kept exactly", "put it in quotes to make it text");
    return nullptr;
}

nlohmann::json read_json_scalar(const PolicyValue &value)
{
    switch (meaning_of_scalar(value.node)) {
    case ScalarMeaning::text:
        return value.node.text;
    case ScalarMeaning::null:
        return nullptr;
    case ScalarMeaning::boolean:
        return value.node.text == "true";
    case ScalarMeaning::integer:
        if (value.node.text == "-0") return -0.0; // no integer has that sign
        return read_number<std::int64_t>(value);
    case ScalarMeaning::real:
        return read_number<double>(value);
    case ScalarMeaning::odd:
        break;
    }
    value.report("must be written as in JSON, found " + describe(value.node),
                 "write true, false, null or a decimal number, or put it in quotes to make it text");
    return nullptr;
}

// What YAML readers disagree about is reported, and null instead.
nlohmann::json read_json(const PolicyValue &value)
{
    switch (value.node.kind) {
    case YamlNode::Kind::null:
        return nullptr;
    case YamlNode::Kind::scalar:
        return read_json_scalar(value);
    case YamlNode::Kind::sequence: {
        auto list = nlohmann::json::array();
        const auto items = read_items(value);
        for (const auto &item : *items)
            list.push_back(read_json(item));
        return list;
    }
    case YamlNode::Kind::mapping:
        break;
    }
    auto object = nlohmann::json::object();
    for (const auto &entry : value.node.entries)
        object[entry.key] = read_json(value_of(entry, value));
    return object;
}

// One key of a level, or all keys of its sections.
Reader into_level(Rules &rules)
{
    return [&rules](const PolicyValue &value) {
        const PolicyKey &key = *value.entry;
        if (key.form == ValueForm::section) return read_section(value, {}, into_level(rules));
        constexpr std::string_view of_user = "users.*.";
        const auto own = key.repeats.empty() ? key.path : key.repeats;
        const std::string name(own.substr(own.starts_with(of_user) ? of_user.size() : 0));
        rules.places[name] = {value.where, value.key};
        bool has_reader = key.form == ValueForm::document;
        if (has_reader && read_entries(value)) rules.documents[name + ".json"] = read_json_text(value);
        each_level_key(
            [&](std::string_view row, const auto &read, auto &said) {
                if (row != name) return;
                has_reader = true;
                if (auto found = read(value)) said = std::move(*found);
            },
            rules);
        if (!has_reader) throw Failure(ExitStatus::internal, fmt::format("nobody reads the key '{}'", display_path(key)));
    };
}

// Reads `users:`, with the roots of each.

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
    const auto read_directory = [&](const PolicyValue &value) {
        has_path = true;
        add_root(value, root, entry);
    };
    read_section(section, {{"path", read_directory}}, into_level(*rules));
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
    read_section(section,
                 {{"roots", read_own_roots},
                  {"config", read_config},
                  {"run_as", with_place(entry.run_as_where, into(entry.run_as, read_name))},
                  {"ssh", [&](const PolicyValue &value) { read_key(value, entry.ssh_key, entry.ssh_key_where); }},
                  {"signing", [&](const PolicyValue &value) { read_key(value, entry.signing_key, entry.signing_key_where); }},
                  {"env", [&](const PolicyValue &value) { read_env(value, entry.env, entry.env_where); }}},
                 into_level(*rules));
    if (!rules->places.empty()) entry.rules = rules;
    if (!has_roots) section.at_its_name().report("has no roots", "add 'roots' with at least one directory, or remove the user");
    return entry;
}

} // namespace

std::string read_json_text(const PolicyValue &value)
{
    return read_json(value).dump();
}

Policy read_policy(const YamlNode &root, Problems &problems)
{
    Policy policy;
    policy.wrapper.command_name = build::command_name;
    policy.agent.where = policy.agent.binary_where = policy.agent.user_where = policy.agent.state_dir_where = {root.where.file};
    policy.wrapper.where = policy.wrapper.command_name_where = policy.sandbox.where = policy.users_where = {root.where.file};
    const auto section = [&](auto read) -> Reader { return [&policy, read](const PolicyValue &value) { read(value, policy); }; };
    const Reader read_users = [&](const PolicyValue &value) {
        policy.users_where = value.where;
        if (const auto entries = read_entries(value))
            for (const auto &entry : *entries)
                policy.users.push_back(read_user(entry));
    };
    const Reader read_config = [&](const PolicyValue &value) { read_section(value, {{"classes", section(read_classes)}}); };
    Rules said;
    read_section({root, problems, "", root.where},
                 {{"version", [](const PolicyValue & /*checked before*/) {}},
                  {"agent", section(read_agent)},
                  {"wrapper", [&](const PolicyValue &value) { read_wrapper(value, policy, into_level(said)); }},
                  {"sandbox", section(read_sandbox)},
                  {"users", read_users},
                  {"config", read_config},
                  {"git_identity", into(policy.git_identity, read_bool)},
                  {"box_notes", into(policy.box_notes, read_bool)},
                  {"env", [&](const PolicyValue &value) { read_env(value, policy.env, policy.env_where); }},
                  {"host_env_files", section(read_host_env_files)},
                  {"view", into(policy.view, read_choice_of<View>)},
                  {"hardening", section(read_hardening)}},
                 into_level(said));
    lay_over(policy, said, problems);
    for (auto &entry : policy.users)
        for (auto &project_root : entry.roots) { // what other keys say of it
            project_root.at_own_path = rules_of(entry.rules).paths.value_or(policy.projects.paths) == ProjectPaths::host;
            if (policy.agent.state_dir != default_state_dir) project_root.state_dir = policy.agent.state_dir;
        }
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

std::optional<UndoPolicy> read_undo(const PolicyValue &value)
{
    static constexpr LimitRow size = {"", nullptr, "MGT", 16UL << 20U, 64UL << 40U, "a whole number with M, G or T, e.g. 1G", "16M to 64T"};
    static constexpr LimitRow file = {"", nullptr, "MGT", 1UL << 20U, 64UL << 40U, size.form, "1M to 64T"};
    UndoPolicy undo;
    if (value.is(YamlNode::Kind::mapping))
        read_section(value, {{"size", [&](const PolicyValue &said) { undo.size = read_said_limit(size, said).value_or(undo.size); }},
                             {"file", [&](const PolicyValue &said) { undo.file = read_said_limit(file, said).value_or(undo.file); }}});
    else if (const auto on = read_bool(value))
        undo.on = *on;
    else
        return std::nullopt;
    return undo;
}

std::optional<Protection> read_protection(const PolicyValue &value)
{
    if (value.is(YamlNode::Kind::scalar)) return read_choice(value) ? std::optional(Protection()) : std::nullopt;
    auto paths = read_paths(value, problem_of_protected_path);
    for (auto &path : paths) {
        path.is_directory = path.path.back() == '/';
        if (path.is_directory) path.path.pop_back();
    }
    return paths;
}

} // namespace pi_agent
