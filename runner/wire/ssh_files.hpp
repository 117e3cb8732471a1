// The copy of a user's ssh key on its way from the child that reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

constexpr std::size_t ssh_key_limit = 16UL * 1024;       // bytes
constexpr std::size_t known_hosts_limit = 1024UL * 1024; // of the user's and the system's each

struct SshFiles {
    std::string key; // empty: none could be had
    std::string known_hosts;
    std::vector<std::string> notices;

    [[nodiscard]] std::string encode() const;
    static SshFiles decode(std::string_view bytes); // throws ProtocolError
};

// None, and why.
SshFiles without_ssh_key(const std::string &path, const std::string &problem);

} // namespace pi_agent
