// What a rendered session sees: mounts, and the host's certificates.
#include "admin/render/render_mounts.hpp"

#include "common/policy/policy_paths.hpp"
#include "runner/as_user/named_files.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/mount/mounts.hpp"

#include <algorithm>
#include <sstream>

namespace pi_agent {

namespace {

std::vector<IdRange> ranges_of(const std::string &map)
{
    std::vector<IdRange> ranges;
    std::istringstream lines(map);
    for (IdRange range{}; lines >> range.on_disk >> range.inside >> range.length;)
        if (range.length > 0) ranges.push_back(range);
    return ranges;
}

} // namespace

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

std::vector<IdRange> user_ids(const RenderPlan &plan)
{
    return ranges_of(swap_map(plan.user.uid.value(), plan.agent.uid.value()));
}

std::vector<IdRange> group_ids(const RenderPlan &plan)
{
    return ranges_of(swap_map(plan.user.gid.value(), plan.agent.gid.value()));
}

namespace {

CertificatePlace place_of(const Policy &policy, const std::string &home, const std::string &project, const std::string &path)
{
    if (is_within(path, home) || is_within(path, project)) return CertificatePlace::workspace;
    const auto &shown = policy.view_paths;
    if (std::any_of(shown.begin(), shown.end(), [&](const PolicyPath &tree) { return is_within(path, tree.path); }))
        return CertificatePlace::view_paths;
    return is_shown(HostView{policy.view, {}, {}}, path) ? CertificatePlace::host_view : CertificatePlace::nobody;
}

} // namespace

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
            if (!path.empty()) found.place = std::min(found.place, place_of(policy, input.home, project, path));
        all.push_back(std::move(found));
    }
    return all;
}

} // namespace pi_agent
