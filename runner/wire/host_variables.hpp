// What the user's own files of variables say, on its way from the child that reads them.
#pragma once

#include "common/policy/env_file.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// A name that is not the user's to set is left out, and `notices` say so, each with file, line and reason.
struct HostVariables {
    std::vector<EnvAssignment> assignments;
    std::vector<std::string> notices;

    [[nodiscard]] std::string encode() const;
    static HostVariables decode(std::string_view bytes); // throws ProtocolError for a variable that is not theirs to set
};

std::string encode_assignments(const std::vector<EnvAssignment> &assignments);
// Throws ProtocolError.
std::vector<EnvAssignment> decode_assignments(std::string_view bytes);

} // namespace pi_agent
