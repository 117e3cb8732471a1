// Gives the agent's git a copy of the ssh key that the policy names, and the hosts that the user knows.
#pragma once

#include "common/decide/access_rules.hpp"
#include "common/decide/agent_places.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/environment.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/wire/ssh_files.hpp"

namespace pi_agent {

// Read by a child that became the user: root gives the agent no key that its user may not read. Nothing where the policy names none.
SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents);

// Writes them into the session's /run: the key for the agent's account alone, and nothing that the agent could change.
void show_ssh_files(const AsRoot &root, const SessionDirectory &session, const Account &agent, const SshFiles &files);

// GIT_SSH_COMMAND, in the lowest layer.
void name_ssh_command(EnvironmentInput &environment);

} // namespace pi_agent
