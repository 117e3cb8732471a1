// pi-agentctl check: is the policy valid, and does this host fit it?
#pragma once

#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/base/problems.hpp"
#include "common/policy/policy_load.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace pi_agent {

// What is wrong with neither policy nor host, but had better be otherwise: sessions without a sandbox, a program that everybody can run,
// secrets that everybody can read, programs that the agent would download.
std::vector<Diagnostic> find_warnings(const Policy &policy);
void warn(const std::vector<Diagnostic> &found, std::ostream &warnings);

// All mistakes of a policy whose files are at hand: its own, and where it does not fit this host.
std::vector<Diagnostic> find_mistakes(const PolicyReading &reading, const Observer &observer, Means means);

// What a check looks at: the policy and this host, or its text alone, for another host (a machine that builds a system).
enum class CheckScope { host, policy_only };

// What came of a check.
struct CheckReport {
    std::vector<Diagnostic> errors;
    std::vector<Diagnostic> warnings;
    Unverified unverified;
    std::size_t entries = 0; // of `users`
    bool enabled = false;
    std::string idle; // idle_defaults (admin/diagnose/explain.hpp)
};

// Of the policy of this host, or of a draft, read alone from a file that need not be trusted. Each part is judged as far as it can be,
// whatever is wrong with the others. Throws only what keeps the policy from being judged.
CheckReport check_policy(const std::optional<std::string> &draft, CheckScope scope = CheckScope::host);

// Of a valid policy.
std::string to_text(const CheckReport &report);
// What `check --json` prints (docs/policy.md), but for the version of its form (print_json).
nlohmann::json to_json(const CheckReport &report);

// The command: throws PolicyError with everything that is wrong. Warnings go to `warnings`, the rest to `out`; with `json` all goes there.
void run_check(const std::optional<std::string> &draft, CheckScope scope, bool json, std::ostream &out, std::ostream &warnings);

} // namespace pi_agent
