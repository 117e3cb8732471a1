// The sections of the policy, each a table of its keys.
#include "common/policy/policy_sections.hpp"

#include "common/base/build_settings.hpp"
#include "common/policy/policy_env.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/policy_values.hpp"

#include <fmt/format.h>

namespace pi_agent {

namespace {

using Reader = std::function<void(const PolicyValue &)>;

Reader into_name(std::string &target, Problems &problems)
{
    return [&](const PolicyValue &value) { target = read_name(value, problems).value_or(target); };
}

Reader into_bool(bool &target, Problems &problems)
{
    return [&](const PolicyValue &value) { target = read_bool(value, problems).value_or(target); };
}

// For a key of which only today's behaviour is there yet.
Reader unsupported(Problems &problems)
{
    return [&](const PolicyValue &value) { refuse_unsupported(value, problems); };
}

void read_accounts(const PolicyValue &value, AgentPolicy &agent, Problems &problems)
{
    const auto choice = read_choice(value, problems);
    if (choice) agent.accounts = *choice == "shared" ? Accounts::shared : Accounts::per_user;
}

void read_binary(const PolicyValue &value, AgentPolicy &agent, Problems &problems)
{
    const auto path = read_line(value, problems);
    if (!path) return;
    agent.binary_where = value.where;
    if (const auto problem = problem_of_binary(*path)) {
        problems.add(value.where, value.key, quote(*path) + " " + problem->text, problem->remedy);
    } else {
        agent.binary = *path;
    }
}

// A value that may not differ from its default until a later step.
Reader fixed(Problems &problems)
{
    return [&](const PolicyValue &value) {
        const auto text = read_line(value, problems);
        if (!text || *text == value.entry->standard) return;
        const auto only = quote(value.entry->standard);
        problems.add(value.where, value.key, "another value than " + only + " is not supported yet", "use " + only + " or remove the key");
    };
}

void read_agent(const PolicyValue &section, Policy &policy, Problems &problems)
{
    auto &agent = policy.agent;
    agent.where = agent.user_where = section.where;
    read_section(section,
                 {{"binary", [&](const PolicyValue &value) { read_binary(value, agent, problems); }},
                  {"user",
                   [&](const PolicyValue &value) {
                       agent.user_where = value.where;
                       agent.user = read_name(value, problems).value_or(agent.user);
                   }},
                  {"group", into_name(agent.group, problems)},
                  {"accounts", [&](const PolicyValue &value) { read_accounts(value, agent, problems); }},
                  {"create_user", into_bool(agent.create_user, problems)},
                  {"binary_name", into_name(agent.binary_name, problems)},
                  {"state_dir", fixed(problems)}},
                 problems);
}

void read_wrapper(const PolicyValue &section, Policy &policy, Problems &problems)
{
    auto &wrapper = policy.wrapper;
    wrapper.where = section.where;
    read_section(section,
                 {{"enable",
                   [&](const PolicyValue &value) {
                       wrapper.where = value.where;
                       wrapper.enable = read_bool(value, problems).value_or(wrapper.enable);
                   }},
                  {"command_name", fixed(problems)},
                  {"hide_direct_binary", into_bool(wrapper.hide_direct_binary, problems)},
                  {"clipboard", into_bool(wrapper.clipboard, problems)}},
                 problems);
}

void read_view(const PolicyValue &value, Policy &policy, Problems &problems)
{
    const auto choice = read_choice(value, problems);
    if (choice) policy.view = *choice == "host" ? View::host : View::minimal;
}

void read_host_env_files(const PolicyValue &section, Policy &policy, Problems &problems)
{
    policy.host_env_files.clear();
    policy.host_env_files_where = section.where;
    for (const auto &file : read_paths(section, problem_of_host_file, problems))
        policy.host_env_files.push_back(file.path);
}

void read_scratch(const PolicyValue &value, Policy &policy, Problems &problems)
{
    const auto choice = read_choice(value, problems);
    if (choice) policy.scratch = *choice == "tmpfs" ? ScratchKind::tmpfs : ScratchKind::disk;
}

void read_document(const PolicyValue &section, const std::string &name, Policy &policy, Problems &problems)
{
    if (!read_entries(section, problems)) return;
    policy.documents[name] = read_json_text(section, problems);
}

void read_classes(const PolicyValue &section, Policy &policy, Problems &problems)
{
    const auto entries = read_entries(section, problems);
    if (!entries) return;
    for (std::size_t index = 0; index < entries->size(); ++index) {
        const auto &value = (*entries)[index];
        const auto path = without_trailing_slashes(section.node.entries[index].key);
        if (const auto problem = problem_of_config_path(path)) {
            problems.add(section.node.entries[index].where, value.key, quote(path) + " " + problem->text, problem->remedy);
            continue;
        }
        const auto choice = read_choice(value, problems);
        if (policy.config_classes.rules().contains(path))
            problems.add(section.node.entries[index].where, value.key, "given twice, with and without a slash at its end",
                         "keep one of them");
        else if (choice)
            policy.config_classes.set(path, *parse_file_class(*choice));
    }
}

} // namespace

Policy read_policy(const YamlNode &root, Problems &problems)
{
    Policy policy;
    policy.agent.where = policy.agent.binary_where = policy.agent.user_where = {root.where.file};
    policy.wrapper.where = policy.sandbox.where = policy.users_where = {root.where.file};
    policy.toolchains = default_toolchains();
    const auto later = unsupported(problems);
    const Reader checked_before = [](const PolicyValue &) {};
    const auto section = [&](auto read) -> Reader {
        return [&policy, &problems, read](const PolicyValue &value) { read(value, policy, problems); };
    };
    const auto document = [&](const char *name) -> Reader {
        return [&policy, &problems, name](const PolicyValue &value) { read_document(value, name, policy, problems); };
    };
    const auto group = [&](std::vector<KeyRule> rules) -> Reader {
        return [&problems, rules = std::move(rules)](const PolicyValue &value) { read_section(value, rules, problems); };
    };
    read_section({root, "", root.where},
                 {{"version", checked_before},
                  {"agent", section(read_agent)},
                  {"wrapper", section(read_wrapper)},
                  {"sandbox", section(read_sandbox)},
                  {"users", section(read_users)},
                  {"projects", section(read_projects)},
                  {"config", group({{"classes", section(read_classes)}})},
                  {"settings", document("settings.json")},
                  {"models", document("models.json")},
                  {"keybindings", document("keybindings.json")},
                  {"mcp", document("mcp.json")},
                  {"settings_lock", into_bool(policy.settings_lock, problems)},
                  {"git_identity", into_bool(policy.git_identity, problems)},
                  {"box_notes", into_bool(policy.box_notes, problems)},
                  {"env", [&](const PolicyValue &value) { read_env(value, policy.env, policy.env_where, problems); }},
                  {"network", [&](const PolicyValue &value) { policy.network = read_network(value, problems).value_or(policy.network); }},
                  {"env_files", [&](const PolicyValue &value) { policy.env_files = read_paths(value, problem_of_managed_file, problems); }},
                  {"host_env_files", section(read_host_env_files)},
                  {"toolchains", section(read_toolchains)},
                  {"view", section(read_view)},
                  {"view_paths", [&](const PolicyValue &value) { policy.view_paths = read_paths(value, problem_of_view_path, problems); }},
                  {"scratch", section(read_scratch)},
                  {"limits", section(read_limits)},
                  {"hardening", later}},
                 problems);
    for (auto &entry : policy.users)
        for (auto &project_root : entry.roots)
            project_root.at_own_path = policy.projects.paths == ProjectPaths::host;
    return policy;
}

void read_version(const YamlNode &root, bool required, Problems &problems)
{
    const auto say = fmt::format("begin the policy with 'version: {}'", policy_version);
    for (const auto &entry : root.entries) {
        if (entry.key != "version") continue;
        const auto value = value_of(entry, {root, "", root.where});
        const auto &text = value.node.text;
        const bool number = value.node.kind == YamlNode::Kind::scalar && meaning_of_scalar(value.node) == ScalarMeaning::integer;
        if (number && text == std::to_string(policy_version)) return;
        if (number && text.front() != '-' && text != "0")
            problems.add(value.where, "version",
                         "is " + text.substr(0, 20) + ", which is newer than this pi-agent (" + build::version + ")",
                         fmt::format("update pi-agent, or write the policy in version {}", policy_version));
        else
            problems.add(value.where, "version", fmt::format("must be the number {}, found {}", policy_version, describe(value.node)), say);
        return;
    }
    if (required) problems.add({root.where.file}, "version", "missing", say);
}

} // namespace pi_agent
