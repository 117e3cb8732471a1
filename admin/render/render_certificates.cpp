// Where the files lie, by their paths alone.
#include "admin/render/render_certificates.hpp"

#include "common/policy/policy_paths.hpp"
#include "runner/as_user/certificate_files.hpp"
#include "runner/plan/host_view.hpp"

#include <algorithm>
#include <sstream>

namespace pi_agent {

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
