// Small files of a session's own: /proc, /etc and the frame that holds them.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/account.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/box_notes.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

// --- The kernel's switches below /proc, which a session may not turn: what ProtectKernelTunables= (systemd.exec(5)) does there.

// To be mounted over those that this kernel has: read-only copies, and something that nobody can open over what tells of the kernel's
// memory. Not by the unit's property, for which systemd 252 and 257 read the whole mount table once more for each of them. Throws.
std::vector<LateMount> protect_kernel_files(const AsRoot &root);

// --- Files that root writes into a session's view: nobody's, and nothing is read for them.

// Puts them where the agent looks for instructions, above every project, and cannot write. Arguments would not do: --append-system-prompt
// takes the place of the user's own APPEND_SYSTEM.md, and breaks `pi install` and its like. The agent's home would not do either, as it
// shares that with other sessions.
void show_box_notes(const SessionDirectory &session, const BoxFacts &facts);

// passwd and group of the session: root, nobody, the agent and its user, and the groups of these and of `by_group`. Not in the host's view.
void show_accounts(const SessionDirectory &session, const HostView &view, const Account &user, const Account &agent,
                   const std::string &agent_home, std::optional<Gid> by_group);

// --- Empty directories that nobody can write, down to the places where something is mounted.

// Something of the session directory that takes the place of one of the host's directories.
struct Frame {
    std::string name; // in the session directory
    std::string root_path;
};

// Makes `places` below the directory `name` of the session and mounts that read-only onto itself. Returns it, for mounting on the places.
UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places);

} // namespace pi_agent
