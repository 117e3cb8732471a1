// Places in the agent's home and project that others mount on: made, named, and removed again.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/user_files.hpp"

namespace pi_agent {

// --- Reads single files of the host's /etc with the agent's rights. Whatever symlinks and owners lead to them on this host, the agent gets
// what its account may read there, and root opens none.

constexpr std::size_t host_file_limit = std::size_t{1} << 20U; // bytes of one; a larger one is left out, with a notice

// As the agent; `name` below /etc. A file that cannot be read counts as missing.
EtcFile read_etc_file(const std::string &name);

// --- Makes the mount points in the agent's home for what it is shown of its user's home.

// As the agent; `places` relative to the home. Returns which of the first `looked_at` hold something of the agent's own, besides what
// `defaults` gives every home: the mounts hide that from now on.
std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at);

// --- The place of a project in the agent's home.

// For a process of the agent's account. Makes ~/projects/ALIAS a link to where the session shows the project. Leaves alone what the agent
// put there, and follows no link. Returns what keeps it from that, empty for nothing.
std::string link_alias(const AsUser &agent, FdRef home, const std::string &alias, const std::string &target);

// For a process of the agent's account, too. Makes it a directory, to mount on. A file there is renamed, a symlink removed.
void make_alias_directory(const AsUser &agent, FdRef home, const std::string &alias);

// --- Removing whole trees that an attacker has filled and may rearrange: by descriptor, following no link, with few descriptors at any
// depth.

// Removes `name` in `parent` and, for a directory, all beneath it. A missing entry is fine. The caller must own the tree: directories that
// lost their permissions get them back. Throws Failure when something stays.
void remove_beneath(FdRef parent, const std::string &name);

// Empties a directory in the same way. An entry that cannot be removed does not stop the removal of the others.
void remove_content_beneath(FdRef directory);

} // namespace pi_agent
