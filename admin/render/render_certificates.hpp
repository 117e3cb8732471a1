// Variables that name files of certificates: a session gets a copy of what it is not shown, and a rendering has none to give.
#pragma once

#include "common/decide/access_rules.hpp"
#include "common/policy/policy.hpp"
#include "runner/plan/environment.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// By whom the agent is shown them at the path that the variable says.
enum class CertificatePlace {
    nobody,
    host_view,  // who shows the host's programs and /etc
    view_paths, // who mounts from this host
    workspace,  // everybody: in the home or the project
};

struct RenderedCertificates {
    std::string name; // of the variable
    std::string key;  // of the policy, that sets it
    Position where;
    CertificatePlace place;
};

// Pure. `project`: its place inside.
std::vector<RenderedCertificates> find_rendered_certificates(const Policy &policy, const AccessRules &rules, const EnvironmentInput &input,
                                                             const std::string &project);

} // namespace pi_agent
