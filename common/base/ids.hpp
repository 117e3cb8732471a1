// User and group ids as types that cannot be mixed up, have no arithmetic, and are never "unset".
#pragma once

#include <sys/types.h>

namespace pi_agent {

template <typename Number, typename Kind>
class Id {
public:
    explicit constexpr Id(Number value) noexcept : value_(value) {}
    [[nodiscard]] constexpr Number value() const noexcept { return value_; }
    friend constexpr bool operator==(Id left, Id right) noexcept = default;

private:
    Number value_;
};

using Uid = Id<uid_t, struct OfUser>;
using Gid = Id<gid_t, struct OfGroup>;

} // namespace pi_agent
