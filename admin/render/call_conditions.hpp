// A system-call filter as data, and as the engines' JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pi_agent {

// The bits of `mask` in one argument are `value`.
struct ArgumentBits {
    std::uint64_t mask;
    std::uint64_t value;
    friend bool operator==(const ArgumentBits &, const ArgumentBits &) = default;
};

// By the number of the argument; all must hold. Empty: whatever the arguments are.
using PassingCondition = std::map<unsigned, ArgumentBits>;

// By the call's name: it passes where one of the conditions holds, and what is not here does not pass.
std::map<std::string, std::vector<PassingCondition>> passing_calls();

} // namespace pi_agent
