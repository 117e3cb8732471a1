// The names that programs read.
#include "runner/plan/certificate_variables.hpp"

#include <algorithm>
#include <array>

namespace pi_agent {

namespace {

// npm reads its own in any case of letters.
constexpr std::array<std::string_view, 17> file_names = {"AWS_CA_BUNDLE",
                                                         "BUNDLE_SSL_CA_CERT",
                                                         "CARGO_HTTP_CAINFO",
                                                         "CURL_CA_BUNDLE",
                                                         "DENO_CERT",
                                                         "GIT_PROXY_SSL_CAINFO",
                                                         "GIT_SSL_CAINFO",
                                                         "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                                         "HTTPLIB2_CA_CERTS",
                                                         "NIX_SSL_CERT_FILE",
                                                         "NODE_EXTRA_CA_CERTS",
                                                         "NPM_CONFIG_CAFILE",
                                                         "npm_config_cafile",
                                                         "PIP_CERT",
                                                         "REQUESTS_CA_BUNDLE",
                                                         "SSL_CERT_FILE",
                                                         "YARN_HTTPS_CA_FILE_PATH"};
constexpr std::array<std::string_view, 2> directory_names = {"GIT_SSL_CAPATH", "SSL_CERT_DIR"}; // the latter a list with colons

template <std::size_t size>
bool holds(const std::array<std::string_view, size> &names, std::string_view name) noexcept
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

bool names_certificates(std::string_view name) noexcept
{
    return holds(file_names, name);
}

bool names_certificate_directories(std::string_view name) noexcept
{
    return holds(directory_names, name);
}

std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment)
{
    std::vector<CertificateVariable> found;
    for (const auto &[name, variable] : layer_environment(environment))
        if (!variable.value.empty() && (names_certificates(name) || names_certificate_directories(name)))
            found.push_back({name, variable.value, variable.from});
    return found;
}

} // namespace pi_agent
