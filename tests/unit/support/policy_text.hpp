// Parses policy texts for tests.
#pragma once

#include "common/policy/policy_load.hpp"

#include <string>
#include <vector>

namespace pi_agent::test {

inline Policy parse(const std::string &text)
{
    return parse_policy({{"p.yaml", text}});
}

// Every diagnostic, one a line; empty when the policy is valid.
inline std::string problems_of(const std::vector<PolicySource> &sources)
{
    try {
        static_cast<void>(parse_policy(sources));
    } catch (const PolicyError &error) {
        return error.what();
    }
    return "";
}

inline std::string problems_of(const std::string &text)
{
    return problems_of(std::vector<PolicySource>{{"p.yaml", text}});
}

inline bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

} // namespace pi_agent::test
