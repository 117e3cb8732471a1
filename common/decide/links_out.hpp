// What a start will not follow: links out of where agents write, in what it reads as the user.
#pragma once

#include "common/decide/user_paths.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace pi_agent {

// Everything that a start reads as its user: the config directory, the directory of skills, files of variables, key, known hosts, git's own
// files. Absolute.
std::vector<std::string> paths_read_as_user(const Policy &policy, const AccessRules &rules, const Account &user);

// What is left out of these paths and all below them, each as a text for people: the name by which it is come to, and why. `go_on` is asked
// before each entry.
std::set<std::string> find_links_out(const UserPaths &paths, const std::vector<std::string> &tops, const std::function<bool()> &go_on);

} // namespace pi_agent
