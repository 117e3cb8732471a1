// Finding out what a rendering has to say of this host, by the same steps as a start of pi.
#pragma once

#include "admin/render/render_plan.hpp"
#include "common/base/fd.hpp"
#include "common/host/identity.hpp"

#include <map>
#include <string>
#include <vector>

namespace pi_agent {

// Which of these are symbolic links, or lie behind one. For a process of the user's.
std::vector<std::string> links_among(const std::map<std::string, PointKind> &points, FdRef top);

// Throws Failure(denied) where pi would not start, and what else keeps a start from coming about.
RenderFacts find_render_facts(const AsRoot &root, const Policy &policy, const AccessRules &rules, const Account &user,
                              const std::string &directory);

} // namespace pi_agent
