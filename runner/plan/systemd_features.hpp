// What the running systemd has beyond the oldest one that serves: decided by its version, here and nowhere else.
#pragma once

#include <cstdint>
#include <string>

namespace pi_agent {

constexpr unsigned oldest_systemd = 252;
constexpr unsigned systemd_with_private_pids = 257;
constexpr unsigned systemd_with_log_sockets = 257;
constexpr unsigned systemd_with_identity_ids = 257;

// What PrivateUsersEx=identity maps: the first 65,536 ids, each to itself (systemd.exec(5)).
constexpr std::uint32_t identity_ids = 65'536;

struct SystemdFeatures {
    unsigned version;
    bool private_pids; // PrivatePIDs=: a session has process numbers of its own, and pi-agent-exec is 1
    bool log_sockets;  // BindLogSockets=: where it exists, the journal's sockets come into every root tree unless it says no
    bool identity_ids; // PrivateUsersEx=identity: a session's user namespace knows more ids than root's and the agent's
};

// `version` is the manager's own word ("257.9-1~deb13u1"). Throws Failure(unavailable) when it is too old or not to be understood.
SystemdFeatures systemd_features(const std::string &version);

} // namespace pi_agent
