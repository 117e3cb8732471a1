// The keys that a policy keeps out of sessions: read by root, for the gate alone.
#pragma once

#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// The key in its file: one line. Throws Failure(configuration) unless root owns the file and alone can read it, and for anything but
// one line of printable bytes; it names the file, never a byte of it. Call it last: each child inherits what this process has in memory.
std::string read_provider_key(const ProviderRule &rule);

// What stands for each of these keys in the session (common/policy/provider_table.hpp), found by a child that reads them. Throws the same.
std::vector<std::string> ask_placeholders(const AsRoot &root, const std::vector<ProviderRule> &rules);

} // namespace pi_agent
