// Brings the user's config into the agent's home: a reader with the user's rights, a writer with the agent's, descriptors between them.
#pragma once

#include "common/account.hpp"
#include "common/fd.hpp"
#include "common/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// What ends a session early; both are only watched.
struct SessionWatch {
    FdRef wrapper;     // its socket: hung up
    FdRef termination; // from watch_termination: readable
};

// `managed` is JSON text. Returns what was skipped, one text each. Throws what reader or writer could not do,
// and when the session ends meanwhile. Root itself reads and writes nothing here.
std::vector<std::string> sync_config(const AsRoot &root, const Account &user, const Account &agent, const std::string &config_directory,
                                     FdRef home, const std::string &managed, const SessionWatch &watch);

} // namespace pi_agent
