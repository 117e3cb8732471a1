// Paths, and what has to be mounted for them.
#include "runner/plan/guard_points.hpp"

#include "common/base/error.hpp"
#include "common/seams/defence.hpp"
#include "runner/plan/limits.hpp"

namespace pi_agent {

std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only, const std::vector<std::string> &kept)
{
    std::map<std::string, PointKind> points;
    const auto keep = [&](const std::string &path) {
        if (!path.empty() && defence_is_on("protect-prefixes")) points.emplace(path, PointKind::prefix);
    };
    const auto keep_above = [&](const std::string &path) {
        for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
            keep(path.substr(0, slash));
    };
    for (const auto &path : kept) {
        keep_above(path);
        keep(path);
    }
    for (const auto &path : read_only) {
        keep_above(path);
        points[path] = PointKind::read_only;
    }
    // What lies beneath a path comes after it, but not at once: "a", "a-b", "a/b".
    for (const auto &path : read_only)
        for (auto next = points.lower_bound(path + "/"); next != points.end() && next->first.compare(0, path.size() + 1, path + "/") == 0;)
            next = points.erase(next);
    if (points.size() > guard_limit)
        throw Failure(ExitStatus::limit, "limit: what is protected and masked in the project needs " + std::to_string(points.size()) +
                                             " mounts, and at most " + std::to_string(guard_limit) +
                                             " are made; remove worktrees and submodules that are not needed, or ask the administrator to "
                                             "protect or mask less (projects.protect, projects.mask)");
    return points;
}

} // namespace pi_agent
