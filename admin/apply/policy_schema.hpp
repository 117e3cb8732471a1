// The policy's keys as a JSON Schema (draft 07), for editors and other programs that look at policies.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <ostream>

namespace pi_agent {

// Made from the table of common/policy/policy_keys.hpp. It refuses nothing that pi-agent accepts; what it cannot say is in docs/policy.md.
nlohmann::ordered_json policy_schema();

// The command.
void run_schema(std::ostream &out);

} // namespace pi_agent
