// Asks children that are the user, as the runner does: root opens nothing that the user names (design rule 1).
#include "admin/render_facts.hpp"

#include "common/error.hpp"
#include "common/escape.hpp"
#include "common/trusted_file.hpp"
#include "runner/admission.hpp"
#include "runner/agent_account.hpp"
#include "runner/child.hpp"
#include "runner/env_files.hpp"
#include "runner/host_view.hpp"
#include "runner/limit_controllers.hpp"
#include "runner/limits.hpp"
#include "runner/project.hpp"
#include "runner/protected_paths.hpp"

#include <fcntl.h>
#include <sstream>

namespace pi_agent {

namespace {

constexpr int search_seconds = mask_search_seconds + child_patience_seconds;

OpenedProject open_as(const AsRoot &root, const Policy &policy, const AccessRules &rules, const Account &user, const std::string &directory)
{
    const HostView view = plan_host_view(policy);
    Child child(root, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        const auto cwd = UniqueFd::adopt(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); // NOLINT(*-vararg)
        if (!cwd) throw_errno("opening " + escape_for_display(directory));
        open_as_caller(user, rules, cwd, channel);
    });
    auto opened = open_project(child, user, rules, view, policy.projects);
    if (const auto *refused = std::get_if<Refused>(&opened)) throw Failure(ExitStatus::denied, refused->text);
    require_harmless_grant(std::get<OpenedProject>(opened), user);
    return std::get<OpenedProject>(std::move(opened));
}

// What is there to protect; what the runner would put in the place of what is not there, no engine can.
std::map<std::string, PointKind> find_points(const AsRoot &root, const Policy &policy, const Account &user, const OpenedProject &project)
{
    const std::string path = project.shown.path();
    ProjectsPolicy searched = policy.projects;
    searched.mask.clear(); // refused for every engine that is not ours
    Child child(root, "finder of protected paths", user, {project.shown.directory.get()}, [&](const AsUser &self, FdRef channel) {
        serve_guarded_paths(self, {{project.shown.directory, path}, project.repository, project.below, {}}, searched, channel);
    });
    const GuardedPaths found = decode_guarded_paths(child.receive_long(search_seconds));
    return plan_points(found.read_only, found.kept);
}

// Whether each line that says something is one of the assignments as it stands, which is how engines read it.
bool is_plain(const std::string &path, const std::vector<EnvAssignment> &assignments)
{
    std::set<std::string> plain;
    for (const auto &assignment : assignments)
        plain.insert(assignment.name + "=" + assignment.value);
    std::istringstream text(read_trusted_file(path, env_file_limit, "file of variables"));
    for (std::string line; std::getline(text, line);)
        if (!line.empty() && line[0] != '#' && !plain.contains(line)) return false;
    return true;
}

} // namespace

RenderFacts find_render_facts(const AsRoot &root, const Policy &policy, const AccessRules &rules, const Account &user,
                              const std::string &directory)
{
    RenderFacts facts{user, find_agent(policy, rules, user), {}, {}, {}, {}, {}, {}, {}, {}, host_memory(), {}};
    require_harmless_groups(policy, rules, facts.agent);
    const OpenedProject project = open_as(root, policy, rules, user, directory);
    facts.tree = project.shown.path();
    facts.below = project.below;
    if (project.shown.by_group) facts.groups.push_back(*project.shown.by_group);
    for (const auto &other : project.git_directories)
        facts.beside.push_back(other.path());
    facts.points = find_points(root, policy, user, project);
    facts.managed_files = read_managed_env_files(policy.env_files);
    for (const auto &file : policy.env_files)
        if (!is_plain(file.path, facts.managed_files)) facts.quoted_files.insert(file.path);
    for (const auto &assignment : ask_host_env_files(root, user, policy.host_env_files).assignments)
        facts.host_variables.push_back(assignment.where);
    return facts;
}

} // namespace pi_agent
