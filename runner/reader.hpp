// The reading half of the config sync: runs as the user, opens everything the user's config names, follows links with the user's rights
// only.
#pragma once

#include "common/fd.hpp"
#include "common/identity.hpp"

#include <string>

namespace pi_agent {

// Sends the files of `config_directory` to the writer over `transfer`, and the names of what it skips, each as one answer, over `channel`;
// an empty answer means done. A missing directory counts as an empty one. Throws Failure(configuration) when it is no readable directory.
void read_config(const AsUser &user, const std::string &config_directory, FdRef transfer, FdRef channel);

} // namespace pi_agent
