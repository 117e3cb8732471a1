// The single files of /etc in the minimal view: which, and the text of those that are the session's own.
#pragma once

#include "common/host/account.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// Names below /etc of those that are copied from the host.
std::vector<std::string> shown_etc_files();

// A line of passwd(5) or group(5) each for these and nobody else. Accounts come from wherever the host has them: the database was asked.
// Names that these files cannot hold are left out.
std::string passwd_text(const std::vector<Account> &accounts, const std::string &agent_name, const std::string &agent_home);
std::string group_text(const std::vector<std::pair<std::string, Gid>> &groups);

} // namespace pi_agent
