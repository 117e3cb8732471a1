// Brings the user's config into the agent's home: a reader with the user's rights, a writer with the agent's, descriptors between them.
#pragma once

#include "common/account.hpp"
#include "common/fd.hpp"
#include "common/identity.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// `managed` is JSON text. Returns what was skipped, one text each. Throws what reader or writer could not do. Root itself reads and writes
// nothing here.
std::vector<std::string> sync_config(const AsRoot &root, const Account &user, const Account &agent, const std::string &config_directory,
                                     FdRef home, const std::string &managed);

} // namespace pi_agent
