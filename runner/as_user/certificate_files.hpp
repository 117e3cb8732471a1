// Files of certificates that variables name, such as a company's own authority: where the agent's view does not show them, it gets a copy.
#pragma once

#include "common/decide/user_paths.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/environment.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/session/session_directory.hpp"

#include <map>
#include <string>
#include <vector>

namespace pi_agent {

constexpr std::size_t certificates_limit = 512UL * 1024; // bytes of one session, which lie in the memory that all sessions share

struct CertificateVariable {
    std::string name;
    std::string path; // as the variable says it
    std::string from; // for people: what sets it
};

// What is to be shown, and what the user should know.
struct CertificateFiles {
    std::vector<std::string> contents;          // of N.pem, from 1
    std::map<std::string, std::string> renamed; // variable -> its path inside
    std::vector<std::string> notices;
};

// What the session sees at its own path.
struct ShownPlaces {
    const HostView &view;
    std::string project;
    std::string home;
};

// Whether a variable is known to name one such file.
bool names_certificates(const std::string &name);

// The variables of an environment that are known to name such files or, as SSL_CERT_DIR, directories of them.
std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment);

// For a process of the user's. What lies in `shown` places is left alone;
// what is no file of certificates, or cannot be read, is left alone and told.
CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables,
                                        const ShownPlaces &shown);

// The same from root, in a child that became the user, whoever set the variable: root reads nothing for the agent that its user may not.
CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents);

// Writes them into the session's /run, where the agent cannot change them.
void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files);

} // namespace pi_agent
