// Reads the policy from trusted files (YAML) into types; the one home of yaml-cpp.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_sources.hpp"

namespace pi_agent {

// Parses and joins `sources` (the main file first, then policy.d in lexical order, then files of users.d beside the main file). Throws
// PolicyError with every diagnostic found.
Policy parse_policy(const std::vector<PolicySource> &sources);

// Reads all files and parses them: the whole policy, for administrators.
// Throws PolicyError (also for a file that others can write) or SystemFailure.
Policy load_policy(const std::string &main_file);

// A policy as far as it can be understood, and all of its mistakes, for whoever corrects them.
struct PolicyReading {
    Policy policy; // a wrong value is left out, or has its default
    std::vector<Diagnostic> problems;
    bool complete = true; // false: a file could not be read, and may have what the policy lacks
    bool missing = false; // there is no main file
};
PolicyReading read_policy_as_far_as_possible(const std::vector<PolicySource> &sources);
PolicyReading read_policy_as_far_as_possible(const std::string &main_file);

// The same as load_policy for a start of `user`: reads only this user's entry of users.d, and checks it together with policy.yaml and
// policy.d. It grants this user what the whole policy grants, and has no other users of users.d.
Policy load_policy_for(const std::string &main_file, const std::string &user);

// The same, for messages to that user. Mistakes in the policy's text are for administrators. The user learns how many there are, who cannot
// start, and what to ask for (Failure, configuration). For a file that cannot be read or trusted, the user sees the reason.
Policy load_policy_to_start(const std::string &main_file, const std::string &user);

} // namespace pi_agent
