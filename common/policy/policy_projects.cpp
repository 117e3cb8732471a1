// Reading the section `projects` of a policy.
#include "common/policy/policy_projects.hpp"

#include "common/policy/policy_paths.hpp"

namespace pi_agent {

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
