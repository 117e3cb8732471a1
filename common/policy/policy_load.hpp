// Reads the policy from its trusted files (YAML) into types.
#pragma once

#include "common/base/build_settings.hpp"
#include "common/policy/policy.hpp"

namespace pi_agent {

// The files that make up the policy: their list, their texts, and whether they changed.

// One YAML text and the name that diagnostics give it: its path.
struct PolicySource {
    std::string name, text;
};

// policy.d beside the main file: parts of the policy, all read at each start.
std::string directory_of_parts(const std::string &main_file);

// users.d beside it: NAME.yaml is the entry of the user NAME. A start reads only its own user's file, so it takes as long with any number
// of users.
std::string directory_of_users(const std::string &main_file);

// The user of the file `path`, by its place. Empty if it is not in users.d, or its name is not NAME.yaml.
std::optional<std::string> user_of_file(const std::string &path, const std::string &main_file);

// True if users.d has a file, or cannot be listed: then there may be more users than a start can see.
bool has_user_files(const std::string &main_file);

// The texts of `main_file`, policy.d/*.yaml and users.d/*.yaml beside it, in this order, read through trusted paths
// (common/host/beneath.hpp). With `user`, only that user's file of users.d, if it exists; it does not look for others. Throws
// PolicyError, of the kind no_policy if `main_file` is missing.
std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user = std::nullopt);
// The same, but reports and leaves out a file that cannot be read.
std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user, Problems &problems);

// Shows whether the files that a start of `user` reads have changed: their list, sizes and times. Taken before they are read.
std::string policy_stamp(const std::string &main_file, const std::string &user);

// Parses these texts into one checked policy.

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
