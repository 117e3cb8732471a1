// The variables that the agent starts with, including those of certificates and providers' keys.
#pragma once

#include "common/policy/policy_sections.hpp"

namespace pi_agent {

// --- The agent's environment: layers in a fixed order. From the user's shell come only variables that describe the terminal.
struct EnvironmentVariable {
    std::string value;
    std::string from; // for people: "shell", "/home/alice/.pi/agent/env:3", "env", "/etc/pi-agent/env:1", "users.alice.env", "pi-agent"
};

// From the lowest layer to the highest.
struct EnvironmentInput {
    std::vector<std::string> presentation;    // NAME=VALUE from the request
    std::vector<EnvAssignment> host_files;    // the user's own
    Environment managed;                      // policy `env`
    std::vector<EnvAssignment> managed_files; // policy `env_files`
    Environment per_user;                     // policy `users.NAME.env`
    std::string home;
    std::string agent_name; // account
    std::string binary;
    std::string session_id;
    std::map<std::string, EnvironmentVariable> defaults = {};    // of the product, below all layers: each can replace them
    std::map<std::string, std::string> certificates_inside = {}; // variables that name files of certificates: their paths inside
    std::vector<PolicyPath> path = {};                           // policy `path`
    std::vector<std::string> user_path = {};                     // of the user's PATH, as seen inside (runner/plan/host_view.hpp)
    Environment gate = {};                                       // of a session whose connections go through one
    std::set<std::string> held_outside = {};                     // variables that no layer may set: the gate holds their keys
    std::string tmpdir = {};                                     // the user's choice, as seen inside; empty: the session's own
};

// Where the host has its programs (build option): directories in the order of PATH. They come after the home's and the shims.
std::vector<std::string> system_path();

// The product's own variables win over every layer.
std::map<std::string, EnvironmentVariable> layer_environment(const EnvironmentInput &input);

// The same as NAME=VALUE, sorted by name.
std::vector<std::string> compose_environment(const EnvironmentInput &input);

// What the policy sets, of all its layers.
Environment managed_environment(const EnvironmentInput &input);

// --- Which variables of an environment name files of certificates.
struct CertificateVariable {
    std::string name;
    std::string path; // as the variable has it
    std::string from; // for people: what sets it
};

// Whether a variable is known to name such a file, or directories of them.
bool names_certificates(std::string_view name) noexcept;
bool names_certificate_directories(std::string_view name) noexcept;

// The variables of this kind that an environment sets.
std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment);

// --- Which keys of the user's shell a session lacks.

// For people: one text for each name in `kept_out` (the caller's variables) that is a provider's key and is not set in `environment`, or
// names a directory of the agent, together with the name. `own_files`: of the policy, relative to the home.
std::vector<std::pair<std::string, std::string>> missed_keys(const std::vector<std::string> &kept_out, const EnvironmentInput &environment,
                                                             const std::vector<std::string> &own_files);

// --- Which model providers the policy's environment has keys for.

// Names of providers, as auth.json has them, whose key variable (as pi reads it, versions 0.87 to 1.6) is set and not empty in `env`.
std::set<std::string> providers_with_keys(const Environment &env);

} // namespace pi_agent
