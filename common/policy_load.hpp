// Reads the policy from trusted files (YAML) into types; the one home of yaml-cpp.
#pragma once

#include "common/policy.hpp"

namespace pi_agent {

// The policy's main file, fixed when the product is built (meson option), never taken from argv or environment.
extern const char *const policy_path;

// One YAML text and the name that diagnostics give it.
struct PolicySource {
    std::string name;
    std::string text;
};

// Parses and joins `sources` (the main file first, then policy.d in lexical order). Throws PolicyError with every diagnostic found.
Policy parse_policy(const std::vector<PolicySource> &sources);

// policy.d beside it.
std::string directory_of_parts(const std::string &main_file);

// The texts of `main_file` and policy.d/*.yaml beside it, read through trusted paths (common/trusted_file.hpp), and named by these.
std::vector<PolicySource> read_policy_sources(const std::string &main_file);

// Reads them and parses them.
// Throws PolicyError (also for a file that others can write) or SystemFailure.
Policy load_policy(const std::string &main_file);

// What tells these files from changed ones: which they are, their sizes and times. Taken before they are read.
std::string policy_stamp(const std::string &main_file);

} // namespace pi_agent
