// The mount points that keep an agent from what is protected and masked in a project.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pi_agent {

enum class PointKind { prefix, read_only };

// Every mount point that these paths need, parents before what is in them: the paths read-only, and each directory above one as it is,
// because a directory that is no mount point can be renamed, and another put in its place. What lies in a read-only one needs none.
// `kept`: directories that only must stay where they are, and those above them. Throws Failure(limit) beyond guard_limit.
std::map<std::string, PointKind> plan_points(const std::vector<std::string> &read_only, const std::vector<std::string> &kept = {});

} // namespace pi_agent
