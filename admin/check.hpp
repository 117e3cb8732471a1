// pi-agentctl check: is the policy valid, and does this host fit it?
#pragma once

#include "admin/user_view.hpp"
#include "common/policy.hpp"
#include "common/problems.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// What could not be found out by this process, as sentences.
using Unverified = std::vector<std::string>;

// Reports files of the installed policy that its users cannot read.
void check_installed_files(Problems &problems);

// Holds the policy against the host: users, groups, roots, the agent's program and accounts.
Unverified check_host(const Policy &policy, const Observer &observer, Problems &problems);

// What is wrong with neither, but had better be otherwise: secrets that everybody can read, programs that the agent would download.
void warn(const Policy &policy, std::ostream &warnings);

// The policy of this host; or a draft, read alone from a file that need not be trusted.
Policy load_for_check(const std::optional<std::string> &draft);

// The command: throws PolicyError with everything that is wrong. Warnings go to `warnings`, the rest to `out`.
void run_check(const std::optional<std::string> &draft, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent
