// Empty directories that nobody can write, down to the places where something is mounted.
#pragma once

#include "common/base/fd.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/session_directory.hpp"

#include <string>
#include <vector>

namespace pi_agent {

// Something of the session directory that takes the place of one of the host's directories.
struct Frame {
    std::string name; // in the session directory
    std::string root_path;
};

// Makes `places` below the directory `name` of the session and mounts that read-only onto itself. Returns it, for mounting on the places.
UniqueFd make_frame(const AsRoot &root, const SessionDirectory &session, const std::string &name, const std::vector<std::string> &places);

} // namespace pi_agent
