// What an action threw, as a value that tables can compare.
#pragma once

#include "common/base/error.hpp"

#include <string>
#include <utility>

namespace pi_agent::test {

struct Caught {
    int status = 0; // 0: nothing was thrown
    std::string text;
};

// The Failure of `action`, or an empty Caught when it throws none. Other exceptions go on and fail the test.
template <typename Action>
Caught failure_of(Action &&action)
{
    try {
        static_cast<void>(std::forward<Action>(action)());
    } catch (const Failure &failure) {
        return {static_cast<int>(failure.status()), failure.what()};
    }
    return {};
}

// The errno of the SystemFailure of `action`; 0 when it succeeds.
template <typename Action>
int errno_of(Action &&action)
{
    try {
        static_cast<void>(std::forward<Action>(action)());
    } catch (const SystemFailure &failure) {
        return failure.error_number();
    }
    return 0;
}

inline bool has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

} // namespace pi_agent::test
