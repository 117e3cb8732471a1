// Has certificates read, and writes them into the session's /run.
#include "runner/root/errand/certificate_files.hpp"

#include "common/base/whole_file.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/root/errand/errand.hpp"

#include <algorithm>

namespace pi_agent {

CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents)
{
    if (variables.empty()) return {};
    try {
        CertificateFiles files = ask<CertificateFiles>(root, {"reader of certificates", user}, [&](const AsUser &) {
            fault_point("reading-certs");
            return read_certificate_files(UserPaths(agents), variables, shown);
        });
        for (const auto &[name, path] : files.renamed)
            if (std::none_of(variables.begin(), variables.end(), [&, &wanted = name](const auto &one) { return one.name == wanted; }))
                throw ProtocolError("certificates of the user's are not what was asked for");
        return files;
    } catch (const Failure &failure) { // no reason to refuse a session
        return {{}, {}, {std::string("files of certificates that variables name are not shown to the agent: ") + failure.what()}};
    }
}

void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files)
{
    if (files.contents.empty()) return;
    session.make_directory("run/pi-agent/ca");
    for (std::size_t number = 1; number <= files.contents.size(); ++number) {
        const std::string path = certificate_path_inside(number);
        write_whole(session.make_file(path.substr(1)), files.contents[number - 1], path);
    }
}

} // namespace pi_agent
