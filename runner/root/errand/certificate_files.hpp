// Gives the agent copies of the files of certificates that variables name, where its view does not show them.
#pragma once

#include "common/decide/agent_places.hpp"
#include "common/host/identity.hpp"
#include "runner/as_user/certificate_files.hpp"
#include "runner/root/session/session_directory.hpp"

#include <vector>

namespace pi_agent {

// Read by a child that became the user, whoever set the variable: root reads nothing for the agent that its user may not.
CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents);

// Writes them into the session's /run, where the agent cannot change them.
void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files);

} // namespace pi_agent
