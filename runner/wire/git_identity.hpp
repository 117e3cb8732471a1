// Who commits, on its way from the child that asks git.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Who commits; each only where the user has set it, the empty text included. Any bytes but NUL.
struct GitIdentity {
    std::optional<std::string> name;
    std::optional<std::string> email;
    std::vector<std::string> safe_directories = {}; // git's safe.directory, as the user trusts repositories of others
};

// What was found, or why nothing could be: `problem` is for people, and empty where all is well.
struct FoundIdentity {
    GitIdentity identity;
    std::string problem;
    std::vector<std::string> notices = {}; // of single files that were left out; git_notice_limit at most

    [[nodiscard]] std::string encode() const;
    static FoundIdentity decode(std::string_view bytes); // throws ProtocolError
};

constexpr std::size_t git_notice_limit = 10;

} // namespace pi_agent
