// Files that root writes into a session's view: nobody's, and nothing is read for them.
#pragma once

#include "common/host/account.hpp"
#include "runner/plan/box_notes.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>

namespace pi_agent {

// Puts them where the agent looks for instructions, above every project, and cannot write. Arguments would not do: --append-system-prompt
// takes the place of the user's own APPEND_SYSTEM.md, and breaks `pi install` and its like. The agent's home would not do either, as it
// shares that with other sessions.
void show_box_notes(const SessionDirectory &session, const BoxFacts &facts);

// passwd and group of the session: root, nobody, the agent and its user, and the groups of these and of `by_group`. Not in the host's view.
void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, std::optional<Gid> by_group);

} // namespace pi_agent
