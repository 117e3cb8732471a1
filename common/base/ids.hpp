// User and group ids as types that cannot be mixed up, have no arithmetic, and are never "unset".
#pragma once

#include <sys/types.h>

namespace pi_agent {

class Uid {
public:
    explicit constexpr Uid(uid_t value) noexcept : value_(value) {}
    [[nodiscard]] constexpr uid_t value() const noexcept { return value_; }
    friend constexpr bool operator==(Uid left, Uid right) noexcept { return left.value_ == right.value_; }
    friend constexpr bool operator!=(Uid left, Uid right) noexcept { return left.value_ != right.value_; }

private:
    uid_t value_;
};

class Gid {
public:
    explicit constexpr Gid(gid_t value) noexcept : value_(value) {}
    [[nodiscard]] constexpr gid_t value() const noexcept { return value_; }
    friend constexpr bool operator==(Gid left, Gid right) noexcept { return left.value_ == right.value_; }
    friend constexpr bool operator!=(Gid left, Gid right) noexcept { return left.value_ != right.value_; }

private:
    gid_t value_;
};

} // namespace pi_agent
