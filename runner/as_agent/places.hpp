// Places in the agent's home and project that others mount on: made, named, and removed again.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/user_files.hpp"

#include <cstddef>

namespace pi_agent {

// --- Reads single files of the host's /etc with the agent's rights: by whatever links and owners they are reached on this host, the agent
// gets what its account may read there, and root opens none.

constexpr std::size_t host_file_limit = std::size_t{1} << 20U; // bytes of one; what is larger is left out and told

// As the agent; `name` below /etc. What cannot be read is as good as not there.
EtcFile read_etc_file(const std::string &name);

// --- Makes the places in the agent's home at which something of its user's home is shown.

// As the agent; `places` relative to the home. Returns which of the first `looked_at` hold something of the agent's own, beside what
// `defaults` gives every home: that is hidden from now on.
std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at);

// --- The place of a project in the agent's home.

// For a process of the agent's account. Makes ~/projects/ALIAS a link to where the session shows the project. Leaves alone what the agent
// put there, and follows no link. Returns what keeps it from that, empty for nothing.
std::string link_alias(const AsUser &agent, FdRef home, const std::string &alias, const std::string &target);

// The same: makes it a directory, to mount on. A file in its place is renamed, a link goes.
void make_alias_directory(const AsUser &agent, FdRef home, const std::string &alias);

// --- Removing whole trees that an attacker has filled and may rearrange: by descriptor, following no link, with few descriptors at any
// depth.

// Removes `name` in `parent` and, for a directory, all beneath it. A missing entry is fine. Whoever calls this owns the tree: directories
// whose rights were taken away get them back. Throws Failure when something stays.
void remove_beneath(FdRef parent, const std::string &name);

// Empties a directory in the same way. What cannot be removed keeps nothing else from being removed.
void remove_content_beneath(FdRef directory);

} // namespace pi_agent
