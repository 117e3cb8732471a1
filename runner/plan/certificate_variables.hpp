// Which variables of an environment name files of certificates.
#pragma once

#include "runner/plan/environment.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct CertificateVariable {
    std::string name;
    std::string path; // as the variable says it
    std::string from; // for people: what sets it
};

// Whether a variable is known to name one such file; directories of them.
bool names_certificates(std::string_view name) noexcept;
bool names_certificate_directories(std::string_view name) noexcept;

// Those of an environment that are set.
std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment);

} // namespace pi_agent
