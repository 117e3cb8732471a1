// The plan of a rendering, from the policy and from what was found on this host.
#include "admin/render/render_plan.hpp"

#include "common/base/text.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/mount/mounts.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <sstream>

namespace pi_agent {

namespace {

constexpr std::size_t label_limit = 63; // RFC 1123
constexpr std::size_t hash_length = 9;  // "-1f3a99c2"

// Made from the user and the tree together, so that unit names, containers and Jobs of two users never meet.
std::string name_of(const std::string &user, const std::string &tree)
{
    const std::string alias = alias_of("/" + user + tree);
    const std::size_t stem = alias.size() - hash_length;
    std::string label = ("pi-agent-" + user + "-" + alias.substr(0, stem)).substr(0, label_limit - hash_length) + alias.substr(stem);
    std::transform(label.begin(), label.end(), label.begin(),
                   [](unsigned char byte) { return std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-'; });
    return label;
}

CertificatePlace place_of_certificates(const Policy &policy, const std::string &home, const std::string &project, const std::string &path)
{
    if (is_within(path, home) || is_within(path, project)) return CertificatePlace::workspace;
    const auto &shown = policy.view_paths;
    if (std::any_of(shown.begin(), shown.end(), [&](const PolicyPath &tree) { return is_within(path, tree.path); }))
        return CertificatePlace::view_paths;
    return is_shown(HostView{policy.view, {}, {}}, path) ? CertificatePlace::host_view : CertificatePlace::nobody;
}

// `project`: its place inside.
std::vector<RenderedCertificates> find_rendered_certificates(const Policy &policy, const AccessRules &rules, const EnvironmentInput &input,
                                                             const std::string &project)
{
    std::vector<RenderedCertificates> all;
    for (const auto &variable : find_certificate_variables(input)) {
        RenderedCertificates found{variable.name, "env." + variable.name, {rules.where.file, 0, 0}, CertificatePlace::workspace};
        if (const auto place = policy.env_where.find(variable.name); variable.from == "env" && place != policy.env_where.end())
            found.where = place->second;
        if (rules.env.contains(variable.name)) { // the strongest layer
            found.key = rules.entry + ".env." + variable.name;
            found.where = rules.where;
        }
        for (const auto &file : policy.env_files)
            if (variable.from.substr(0, variable.from.rfind(':')) == file.path) {
                found.key = "env_files";
                found.where = file.where;
            }
        std::istringstream paths(variable.path); // SSL_CERT_DIR has a list
        for (std::string path; std::getline(paths, path, ':');)
            if (!path.empty()) found.place = std::min(found.place, place_of_certificates(policy, input.home, project, path));
        all.push_back(std::move(found));
    }
    return all;
}

} // namespace

RenderPlan plan_rendering(const Policy &policy, const AccessRules &rules, const RenderFacts &facts)
{
    const std::string home = agents_home(policy.agent.state_dir, short_name(facts.user));
    const bool at_own_path = policy.projects.paths == ProjectPaths::host;
    const std::string place = at_own_path ? facts.tree : home + "/" + alias_directory + "/" + alias_of(facts.tree);
    RenderPlan plan{static_cast<const RenderFound &>(facts),
                    name_of(facts.user.name, facts.tree),
                    policy,
                    rules,
                    place,
                    facts.below.empty() ? place : join_path(place, facts.below),
                    facts.below.empty() ? facts.tree : join_path(facts.tree, facts.below),
                    home,
                    {},
                    {},
                    {}};
    std::set<std::string> places;
    for (const auto &file : policy.env_files) {
        RenderedEnvFile rendered{file, {}, !facts.quoted_files.contains(file.path)};
        for (const auto &assignment : facts.managed_files)
            if (assignment.where.substr(0, assignment.where.rfind(':')) == file.path) {
                rendered.names.insert(assignment.name);
                places.insert(assignment.where);
            }
        plan.env_files.push_back(std::move(rendered));
    }
    EnvironmentInput input{{}, {}, policy.env, facts.managed_files, rules.env, home, facts.agent.name, policy.agent.binary, {}};
    input.path = policy.path;
    input.tmpdir = "/tmp";
    plan.certificates = find_rendered_certificates(policy, rules, input, place);
    for (const auto &[name, variable] : layer_environment(input)) // except those of one session: an engine starts the same again and again
        if (name != "PI_AGENT_SESSION" && !places.contains(variable.from)) plan.variables[name] = variable.value;
    return plan;
}

std::vector<EngineMount> mounts_of(const RenderPlan &plan)
{
    std::vector<EngineMount> mounts;
    for (const auto &path : plan.policy.view_paths)
        mounts.push_back({path.path, path.path, true, false});
    mounts.push_back({plan.home, plan.home, false, false});
    mounts.push_back({plan.tree, plan.place, false, true});
    for (const auto &[path, kind] : plan.points)
        mounts.push_back({join_path(plan.tree, path), join_path(plan.place, path), kind == PointKind::read_only, true});
    return mounts;
}

std::string swapped_ids(std::uint32_t user, std::uint32_t agent, const char *range, const char *between)
{
    std::string text;
    std::istringstream lines(swap_map(user, agent));
    for (std::uint64_t on_disk = 0, inside = 0, length = 0; lines >> on_disk >> inside >> length;)
        if (length > 0) text += (text.empty() ? "" : between) + fmt::format(fmt::runtime(range), on_disk, inside, length);
    return text;
}

} // namespace pi_agent
