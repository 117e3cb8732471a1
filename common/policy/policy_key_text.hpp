// What a key of the policy takes, in words for people: for docs/policy.md and the manual.
#pragma once

#include "common/policy/policy_keys.hpp"

#include <string>

namespace pi_agent {

// "a whole number with `K`, `M`": the form of its value in Markdown, words that are written as they stand in backquotes.
std::string form_text(const PolicyKey &key);

} // namespace pi_agent
