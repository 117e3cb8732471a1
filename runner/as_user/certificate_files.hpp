// Files of certificates that variables name, such as a company's own authority, read as the user.
#pragma once

#include "common/decide/user_paths.hpp"
#include "runner/plan/certificate_variables.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/certificate_files.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What the session sees at its own path.
struct ShownPlaces {
    const HostView &view;
    std::string project;
    std::string home;
};

// For a process of the user's. What lies in `shown` places is left alone; what is no file of certificates, or cannot be read, is left alone
// and told.
CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables,
                                        const ShownPlaces &shown);

} // namespace pi_agent
