// Environment files in the syntax of systemd's EnvironmentFile= (systemd.exec(5)): what systemd reads is read alike, and what it drops with
// a word in the journal is an error here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct EnvAssignment {
    std::string name;
    std::string value;
    std::string where; // "file:line"
};

constexpr std::size_t env_file_limit = std::size_t{1} << 20U; // bytes

// Throws Failure(configuration) with `name`:line and what is wrong, never with a value: a quote that is not closed, a line without '=', a
// name that is none, bytes that are not UTF-8, control characters, more than Linux passes to a program.
std::vector<EnvAssignment> parse_env_file(std::string_view text, const std::string &name);

} // namespace pi_agent
