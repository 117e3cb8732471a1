// Environment files in the syntax of systemd's EnvironmentFile= (systemd.exec(5)): reads what systemd reads in the same way. What systemd
// drops with a line in the journal is an error here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

struct EnvAssignment {
    std::string name;
    std::string value;
    std::string where; // "file:line"

    static void fields(auto &archive, auto &self) { archive(self.name, self.value, self.where); }
};

constexpr std::size_t env_file_limit = std::size_t{1} << 20U; // bytes

// Throws Failure(configuration) with `name`:line and the mistake, never with a value. Mistakes are an unclosed quote, a line without '=',
// an invalid name, bytes that are not UTF-8, control characters, and more than Linux passes to a program.
std::vector<EnvAssignment> parse_env_file(std::string_view text, const std::string &name);

} // namespace pi_agent
