// The mounts of a rendering, as a table.
#include "admin/render/render_mounts.hpp"

#include "common/policy/policy_paths.hpp"
#include "runner/root/mount/id_map.hpp"

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

} // namespace pi_agent
