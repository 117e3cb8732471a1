// What root tells the wrapper. That is the user's to stop and need not read: so it is waited for once, and not again until it has taken
// something.
#pragma once

#include "common/base/fd.hpp"
#include "common/base/request.hpp"

#include <string>
#include <vector>

namespace pi_agent {

class ToWrapper {
public:
    explicit ToWrapper(FdRef wrapper) noexcept : wrapper_(wrapper) {}

    // best_effort: a wrapper that is gone ends the session by itself, and one that does not read does not hear.
    void tell(const RunnerMessage &message) noexcept;
    void tell_all(const std::vector<std::string> &notices) noexcept;
    // Without waiting, whatever came before. False when it did not get there.
    bool tell_at_once(const RunnerMessage &message) noexcept;

private:
    FdRef wrapper_;
    bool reads_ = true;
};

} // namespace pi_agent
