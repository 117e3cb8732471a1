// What apply has hidden on this host, with the owner and mode that it had before.
#pragma once

#include "admin/host/root_files.hpp"
#include "common/host/identity.hpp"

#include <map>
#include <set>
#include <string>
#include <sys/stat.h>

namespace pi_agent {

struct FormerRights {
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0755;
};

// By canonical path. Kept beside the policies that were applied (admin/host/policy_files.hpp), in a directory of root's alone.
using HiddenPlaces = std::map<std::string, FormerRights>;
HiddenPlaces read_hidden_places(const AsRoot &root);

// Notes what `path` has now, before that changes; what is noted of it already stays.
void remember_hidden(const AsRoot &root, const std::string &path, const struct stat &facts);

// Whether a group is the agents': `group`, that of the policy that was applied last, or one that is not there any more.
bool is_agents_group(const AsRoot &root, gid_t gid, const std::string &group);

// Gives owner and mode back to each noted place that is none of `current`, and forgets it. One that somebody has given another owner or
// mode meanwhile stays as it is, and noted as long as it belongs to the agents' group.
void give_back_hidden(const AsRoot &root, const std::set<std::string> &current, const std::string &group, Changes &changes);

} // namespace pi_agent
