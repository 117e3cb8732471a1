// The files of the installed policy as a whole: what was applied is kept, and put back.
#pragma once

#include "admin/host/root_files.hpp"
#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy_load.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// Absolute paths with their texts, the main file first.
using PolicyFiles = std::vector<PolicySource>;

bool are_same(const PolicyFiles &one, const PolicyFiles &other);

// The difference as text, file by file (admin/text/terminal.hpp).
std::string difference_of(const PolicyFiles &before, const PolicyFiles &after);

// The file of the policy that `name` means: the main one, or one of policy.d, by its path or by its name there, or users.d/NAME.yaml; it
// need not exist. Throws Failure(usage) for what would not be read as a part of the policy.
std::string policy_file_named(const std::string &name);

// The directory that holds such a file; policy.d and users.d are made where they are missing.
UniqueFd open_policy_directory(const AsRoot &root, const std::string &path);
// Makes such a directory, or that of the main file, unless it is there. Throws where others than root could lead it elsewhere.
void make_policy_directory(const std::string &directory);

// Makes `wanted` the installed policy, root 0644: all its files are written before the first takes its place, so that a full disk leaves
// the policy as it was; files of policy.d and users.d that are not wanted go last.
void install_policy_files(const AsRoot &root, const PolicyFiles &installed, const PolicyFiles &wanted, Changes &changes);

// What apply keeps, in /var/lib/pi-agent/applied, root 0700: the policy that was last applied, and the one that was applied before that and
// was another. The place is fixed, because state_dir is a part of the policy.
extern const char *const applied_directory;
inline std::string path_of_applied(const std::string &name)
{
    return std::string(applied_directory) + "/" + name;
}
constexpr const char *hidden_name = "hidden.json"; // of admin/host/hidden_places.cpp, which goes with the directory
struct AppliedPolicies {
    std::optional<PolicyFiles> last, previous;
};
AppliedPolicies read_applied(const AsRoot &root);

// Makes that directory, and notes that `files` have been applied; nothing changes where they were the last.
void make_applied_directory(const AsRoot &root, const std::string &state_dir, Changes &changes);
void keep_applied(const AsRoot &root, const PolicyFiles &files);
// Takes the directory away, with what is kept there.
void forget_applied(const AsRoot &root, Changes &changes);

} // namespace pi_agent
