// The agent as npm installs it for everybody (npm install -g), beside the one that the policy names.
#pragma once

#include "admin/host/changes.hpp"
#include "common/host/identity.hpp"
#include "common/policy/policy.hpp"

#include <array>
#include <string>
#include <vector>

namespace pi_agent {

// Where everybody's shell finds programs.
inline constexpr std::array<const char *, 6> system_program_directories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                                           "/usr/bin",        "/opt/bin",       "/snap/bin"};

struct NpmInstall {
    std::string path;     // of the package's directory
    bool is_open;         // to everybody, by its mode; or not known, where others can change the way to it
    std::string why_left; // what keeps apply from closing it; empty when nothing does
};

// Packages of the agent's names in npm's global directories, and those that the command `pi` of a system directory is a link into, without
// the one that holds agent.binary. Root changes nothing on a way that others can change, and nothing that a link only leads to.
std::vector<NpmInstall> find_npm_installs(const AsRoot &root, const Policy &policy);

// Closes the open ones like the policy's agent (hide_place), or opens those that were closed so where the policy says hide_direct_binary:
// false. Returns the open ones that are left so.
std::vector<NpmInstall> hide_npm_installs(const AsRoot &root, const Policy &policy, Changes &changes);

} // namespace pi_agent
