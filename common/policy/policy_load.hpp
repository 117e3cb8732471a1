// Reads the policy from trusted files (YAML) into types; the one home of yaml-cpp.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/policy/policy.hpp"
#include "common/policy/policy_sources.hpp"

namespace pi_agent {

// Parses and joins `sources` (the main file first, then policy.d in lexical order, then files of users.d beside the main file). Throws
// PolicyError with every diagnostic found.
Policy parse_policy(const std::vector<PolicySource> &sources);

// Reads all files and parses them: the whole policy, for who administers it.
// Throws PolicyError (also for a file that others can write) or SystemFailure.
Policy load_policy(const std::string &main_file);

// A policy as far as it can be understood, and everything that is wrong with it: for who corrects it.
struct PolicyReading {
    Policy policy; // a value that is wrong is left out, or has its default
    std::vector<Diagnostic> problems;
    bool complete = true; // false: a file could not be read, and what the policy lacks may stand there
};
PolicyReading read_policy_as_far_as_possible(const std::vector<PolicySource> &sources);
PolicyReading read_policy_as_far_as_possible(const std::string &main_file);

// The same as load_policy for a start of `user`: of users.d only this user's entry is read, and what it says together with policy.yaml and
// policy.d is checked. Whatever the whole policy would grant this user, this one does; of others in users.d it knows nothing.
Policy load_policy_for(const std::string &main_file, const std::string &user);

// The same, for messages to that user: of what is wrong in the policy's text, which is for its administrators, only how much it is, who
// cannot start for it, and what to ask for (Failure, configuration). A file that cannot be read or trusted is told as it is.
Policy load_policy_to_start(const std::string &main_file, const std::string &user);

} // namespace pi_agent
