// What a session gets under a policy, as one text: all that levels can say, without the places.
#pragma once

#include "common/policy/policy.hpp"

#include <fmt/format.h>
#include <string>

namespace pi_agent::test {

inline std::string shown(const std::vector<PolicyPath> &paths)
{
    std::string text;
    for (const auto &path : paths)
        text += path.path + (path.is_directory ? "/;" : ";");
    return text;
}

inline std::string shown(const std::optional<SaidLimit> &limit)
{
    return limit ? std::to_string(limit->amount) : "-";
}

inline std::string shown(const HomeDirectories &directories)
{
    return shown(directories.paths) + (directories.best_effort ? "best_effort" : "");
}

inline std::string shown(const Policy &policy)
{
    std::string text = fmt::format("network {}", static_cast<int>(policy.network.mode));
    for (const auto &range : policy.network.allowed)
        text += " " + to_string(range);
    for (const auto &rule : policy.network.hosts)
        text += " " + to_string(rule);
    for (const auto &rule : policy.network.may_grant)
        text += " +" + to_string(rule);
    if (policy.network.via) text += " by " + to_string(*policy.network.via) + " " + policy.network.via_login_file.path;
    for (const auto &rule : policy.network.direct)
        text += " -" + to_string(rule);
    for (const auto &provider : policy.providers)
        text += "\nprovider " + provider.name + " " + provider.key_file.path;
    const auto &limits = policy.limits;
    text += fmt::format("\nlimits {} {} {} {} {} {}", shown(limits.memory), shown(limits.memory_share), shown(limits.tasks),
                        shown(limits.cpu), shown(limits.runtime), shown(limits.sessions));
    const auto &projects = policy.projects;
    text += fmt::format("\nprojects {} {} {} {} {} {} {} {} {}", static_cast<int>(projects.paths), static_cast<int>(projects.scope),
                        projects.protect ? shown(*projects.protect) : "default", shown(projects.mask), projects.aftermath,
                        projects.read_only, projects.undo.on, projects.undo.size.text, projects.undo.file.text);
    for (const auto &[name, document] : policy.documents)
        text += "\n" + name + " " + document;
    text += fmt::format("\nlock {} {}\nenv_files {}\nreadable {}\ncaches {}", policy.settings_lock, policy.mcp_lock,
                        shown(policy.env_files), shown(policy.toolchains.readable), shown(policy.toolchains.caches));
    const auto &placement = policy.placement;
    text += fmt::format("\nplacement {}", static_cast<int>(placement.engine.value_or(PlacementEngine::none)));
    for (const auto *word : {&placement.srun, &placement.partition, &placement.account, &placement.qos, &placement.constraint})
        text += " " + (*word ? (*word)->text : "-");
    return text + fmt::format("\nview_paths {}\npath {}\ndevices {}\nscratch {}\n", shown(policy.view_paths), shown(policy.path),
                              shown(policy.devices), static_cast<int>(policy.scratch));
}

} // namespace pi_agent::test
