// All that levels can say, as text, each value with the place that says it: for explain, why and show.
#pragma once

#include "common/policy/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pi_agent {

struct EffectiveValue {
    std::string key;            // of the whole policy: "limits.memory"
    std::string value;          // as YAML in one line; empty for a key without value and default
    std::optional<SaidAt> said; // unset: the default
};

// Of a policy as it holds for somebody (common/decide/effective.hpp), in the order of the table of keys.
std::vector<EffectiveValue> effective_values(const Policy &policy);

} // namespace pi_agent
