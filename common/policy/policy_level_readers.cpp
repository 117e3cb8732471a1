// Reads what a level of the policy says: the keys that the whole policy, users and roots have in common.
#include "common/policy/policy_sections.hpp"

#include "common/policy/policy_paths.hpp"

namespace pi_agent {

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
