// What `pi` and pi-agentctl look at as the caller; a start needs none of it.
#pragma once

#include "common/as_user/user_paths.hpp"

namespace pi_agent {

// --- The directory of a start, as its user sees it. Refusals have the same text in `pi` and in explanations.

// "." or a path. Throws Failure(denied) if this user may not enter it, SystemFailure if it does not exist.
UniqueFd open_working_directory(const std::string &path);

// Canonical. Throws Failure(denied) if it was deleted, or if this mount namespace does not have it.
std::string path_of_working_directory(FdRef directory);

// --- The directories in which agents of the caller write (common/as_user/user_paths.hpp).

// For processes of `user`. Leaves out unusable roots, which no session sees.
std::vector<AgentPlace> find_roots(const AccessRules &rules, const Account &user);
AgentPlaces find_agent_places(const Policy &policy, const AccessRules &rules, const Account &user);

// --- What a start does not follow: links out of places where agents write, in what it reads as the user.

// Everything that a start reads as its user: the config directory, the directory of skills, files of variables, key, known hosts, git's own
// files. Absolute.
std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user);

// What is left out of these paths and everything below them, each as a text for people: its name, and the reason. Calls `go_on` before each
// entry.
std::set<std::string> find_links_out(const UserPaths &paths, const std::vector<std::string> &tops, const std::function<bool()> &go_on);

} // namespace pi_agent
