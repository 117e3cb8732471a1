// What `pi` and pi-agentctl tell people of a policy; a start needs none of it.
#pragma once

#include "common/decide/decision.hpp"

namespace pi_agent {

// --- All that levels can say, as text, each value with the place that says it: for explain, why and show.
struct EffectiveValue {
    std::string key;            // of the whole policy: "limits.memory"
    std::string value;          // as YAML in one line; empty for a key without value and default
    std::optional<SaidAt> said; // unset: the default
};

// The values of a policy that policy_for, policy_in, granted or narrowed made, in the order of the table of keys.
std::vector<EffectiveValue> effective_values(const Policy &policy);

// --- Secrets in a policy, which every user of the host can read.

// By its name (API_KEY, githubToken), or because the value is an address with a password.
bool looks_secret(const std::string &name, const std::string &value);

// Variables whose name or value looks like a secret. Not an error: `check` warns.
std::vector<Diagnostic> find_exposed_secrets(const Policy &policy);

// --- How a node of the cluster is asked for.

constexpr const char *default_srun = "/usr/bin/srun";
constexpr const char *job_name = "pi"; // unless somebody names the job otherwise

// The program that asks for a job.
std::string srun_of(const Policy &policy);

// Options of srun for one task on one node: as much of it as the limits allow a session, and what the policy says of the job.
std::vector<std::string> job_options(const Policy &policy, const std::string &name);

// srun's whole command line for a session of this policy, without its own name: the job, and `command` on the node, whose input and output
// are srun's.
std::vector<std::string> srun_arguments(const Policy &policy, const std::vector<std::string> &command);

// --- The bytes that escape_for_display() was given. A sequence that it does not write stays as it is.
std::string without_escapes(std::string_view shown);

} // namespace pi_agent
