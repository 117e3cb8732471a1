// A key of the user's that the policy names for `git push` and `git fetch` over ssh: the agent's git gets a copy, and the hosts that the
// user knows.
#pragma once

#include "common/decide/access_rules.hpp"
#include "common/decide/user_paths.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/environment.hpp"
#include "runner/root/session/session_directory.hpp"

#include <string>
#include <vector>

namespace pi_agent {

constexpr std::size_t ssh_key_limit = 16UL * 1024;       // bytes
constexpr std::size_t known_hosts_limit = 1024UL * 1024; // of the user's and the system's each

struct SshFiles {
    std::string key; // empty: none could be had
    std::string known_hosts;
    std::vector<std::string> notices;
};

// For a process of the user's. `key` is absolute; `home` the user's.
SshFiles read_ssh_files(const UserPaths &paths, const std::string &key, const std::string &home);

// The same from root, in a child that became the user: root gives the agent no key that its user may not read. Nothing where the policy
// names none.
SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents);

// Writes them into the session's /run: the key for the agent's account alone, and nothing that the agent could change.
void show_ssh_files(const AsRoot &root, const SessionDirectory &session, const Account &agent, const SshFiles &files);

// GIT_SSH_COMMAND, in the lowest layer.
void name_ssh_command(EnvironmentInput &environment);

} // namespace pi_agent
