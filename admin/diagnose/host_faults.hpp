// What is wrong with the host beside the policy: ways around the wrapper, what agents' accounts run outside of sessions, what sessions
// left.
#pragma once

#include "admin/diagnose/fault.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pi_agent {

// Users of the policy, with the accounts that their agents run as.
using AgentsOfUsers = std::vector<std::pair<Account, Account>>;

// Programs that anybody can start in the place of the wrapper: the agent itself, and other copies of it.
Faults find_open_programs(const AsRoot &root, const Policy &policy);
// Our own files, which root runs.
Faults find_changed_files();
// Accounts that agents of several users share; what such an account runs, or is to run, without a session.
Faults find_account_faults(const AgentsOfUsers &agents);
// Where state cannot be kept, or a root not be mapped.
Faults find_file_system_faults(const AsRoot &root, const Policy &policy, const AgentsOfUsers &agents, const Observer &observer);
// What sessions left whose runners are gone.
Faults find_leftovers(const AsRoot &root);

} // namespace pi_agent
