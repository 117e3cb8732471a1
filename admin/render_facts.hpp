// Finding out what a rendering has to say of this host, by the same steps as a start of pi.
#pragma once

#include "admin/render_plan.hpp"
#include "common/identity.hpp"

#include <string>

namespace pi_agent {

// Throws Failure(denied) where pi would not start, and what else keeps a start from coming about.
RenderFacts find_render_facts(const AsRoot &root, const Policy &policy, const AccessRules &rules, const Account &user,
                              const std::string &directory);

} // namespace pi_agent
