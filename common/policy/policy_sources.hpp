// The files that make up the policy: which they are, their texts, and whether they changed.
#pragma once

#include "common/base/problems.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// One YAML text and the name that diagnostics give it: its path.
struct PolicySource {
    std::string name;
    std::string text;
};

// policy.d beside the main file: parts of the policy, all read at each start.
std::string directory_of_parts(const std::string &main_file);

// users.d beside it: NAME.yaml is the entry of the user NAME. A start reads its own user's alone, so that it costs the same however many
// there are.
std::string directory_of_users(const std::string &main_file);

// Whose entry the file `path` is, by its place: none for one that is not in users.d, or of another name than NAME.yaml.
std::optional<std::string> user_of_file(const std::string &path, const std::string &main_file);

// True when there is a users.d: then more users are possible than a start can see.
bool has_user_files(const std::string &main_file);

// Whether there is such a file for `user`. False for what is no plain name.
bool has_user_file(const std::string &main_file, const std::string &user);

// The texts of `main_file`, policy.d/*.yaml and users.d/*.yaml beside it, in this order, read through trusted paths
// (common/host/trusted_file.hpp). With `user` of users.d only the file of this user, where there is one: the others are not even looked
// for. Throws PolicyError.
std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user = std::nullopt);
// The same, and a file that cannot be read is reported and left out.
std::vector<PolicySource> read_policy_sources(const std::string &main_file, const std::optional<std::string> &user, Problems &problems);

// What tells the files that a start of `user` reads from changed ones: which they are, their sizes and times. Taken before they are read.
std::string policy_stamp(const std::string &main_file, const std::string &user);

} // namespace pi_agent
