// Rules for environment variables that a policy, or a user's file, sets.
#pragma once

#include "common/policy/policy.hpp"
#include "common/policy/policy_values.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// [A-Za-z_][A-Za-z0-9_]*
bool is_variable_name(std::string_view name) noexcept;

// Why a policy may not set `name`: the name is invalid, pi-agent sets it itself, or it changes programs before they begin.
std::optional<std::string> problem_of_env_name(const std::string &name);

// Why a user's own file may not: the same, or it changes interpreters before they begin (NODE_OPTIONS, PYTHONSTARTUP, …).
std::optional<std::string> problem_of_host_env_name(const std::string &name);

// An `env` section. Reports and leaves out what may not be set.
void read_env(const PolicyValue &section, Environment &env, EnvironmentPlaces &places);

// By its name (API_KEY, githubToken), or because the value is an address with a password.
bool looks_secret(const std::string &name, const std::string &value);

// Providers, by the names that auth.json has for them, whose key pi (0.73 to 0.87) reads from this variable.
std::vector<std::string> providers_of_key(std::string_view variable);
// The variable of such a provider; the first where it reads several.
std::optional<std::string> key_variable_of_provider(std::string_view provider);

// Variables whose name or value looks like a secret. Not an error, but every user of the host can read the policy: `check` warns.
std::vector<Diagnostic> find_exposed_secrets(const Policy &policy);

} // namespace pi_agent
