// Reading certificates as the user.
#include "runner/as_user/certificate_files.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/base/whole_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "runner/as_user/host_file.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace pi_agent {

namespace {

bool is_shown(const std::string &path, const ShownPlaces &shown)
{
    return is_shown(shown.view, path) || is_within(path, shown.project) || is_within(path, shown.home);
}

// Not a defence: it keeps people's mistakes from the agent.
void require_certificates(const std::string &content)
{
    if (!defence_is_on("certificates-only")) return;
    if (content.find("PRIVATE KEY-----") != std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds a private key; name a file that holds certificates alone");
    if (content.find("CERTIFICATE-----") == std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds no certificate in PEM format (-----BEGIN CERTIFICATE-----)");
}

// Where a path leads to; none where the user may not look, and the view shows it: the agent's home.
std::optional<UserPlacePtr> find_place(const UserPaths &paths, const std::string &path, const ShownPlaces &shown)
{
    try {
        return paths.follow(path);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == EACCES && is_shown(path, shown)) return std::nullopt;
        throw SystemFailure(failure.error_number(), "looking for it");
    } catch (const NotFollowed &failure) { // of an agents' place
        if (!failure.leads_out() && is_shown(path, shown)) return std::nullopt;
        throw;
    }
}

// The content, or none where the view shows the file under this name. Throws Failure where it can do neither.
std::optional<std::string> read_certificates(const UserPaths &paths, const std::string &path, const ShownPlaces &shown, std::size_t limit)
{
    if (path.front() != '/') throw Failure(ExitStatus::configuration, "it is no absolute path");
    const std::optional<UserPlacePtr> place = find_place(paths, path, shown);
    if (!place || (is_shown(path, shown) && is_shown((*place)->path, shown))) return std::nullopt;
    if (S_ISDIR((*place)->facts.st_mode))
        throw Failure(ExitStatus::configuration, "it is a directory, and only files are copied for the agent");
    const HostFile file = open_host_file(paths, path);
    if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
    if (file.facts.size > limit)
        throw Failure(ExitStatus::configuration,
                      "it, or all such files together, are larger than " + std::to_string(certificates_limit / 1024) + " KiB");
    std::string content = read_whole(file.fd, limit, "it");
    require_certificates(content);
    return content;
}

void tell(CertificateFiles &files, const CertificateVariable &variable, const std::string &path, const std::string &problem)
{
    files.notices.push_back(variable.name + " (" + escape_for_display(variable.from) + "): " + escape_for_display(path) +
                            " is not shown to the agent: " + problem);
}

void look_at_directories(CertificateFiles &files, const CertificateVariable &variable, const ShownPlaces &shown)
{
    std::size_t start = 0;
    while (start <= variable.path.size()) {
        const std::size_t end = std::min(variable.path.find(':', start), variable.path.size());
        const std::string path = variable.path.substr(start, end - start);
        if (!path.empty() && !is_shown(path, shown))
            return tell(files, variable, path,
                        "directories are not copied; put the certificates into one file, and name it in SSL_CERT_FILE");
        start = end + 1;
    }
}

} // namespace

CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables, const ShownPlaces &shown)
{
    CertificateFiles files;
    std::map<std::string, std::string> known; // the same file is often named by several
    std::size_t left = certificates_limit;
    for (const auto &variable : variables) {
        if (names_certificate_directories(variable.name)) {
            look_at_directories(files, variable, shown);
            continue;
        }
        try {
            if (known.find(variable.path) == known.end()) {
                auto content = read_certificates(paths, variable.path, shown, left);
                if (!content) continue;
                left -= content->size();
                files.contents.push_back(std::move(*content));
                known[variable.path] = certificate_path_inside(files.contents.size());
            }
            files.renamed[variable.name] = known[variable.path];
        } catch (const Failure &failure) {
            tell(files, variable, variable.path, failure.what());
        }
    }
    return files;
}

} // namespace pi_agent
