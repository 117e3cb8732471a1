// Whether two values of a policy are the same, wherever it says them.
#pragma once

#include "common/policy/rules.hpp"

#include <algorithm>
#include <type_traits>

namespace pi_agent {

inline bool same(const PolicyPath &one, const PolicyPath &other)
{
    return one.path == other.path && one.is_directory == other.is_directory;
}

inline bool same(const HostRule &one, const HostRule &other)
{
    return to_string(one) == to_string(other);
}

inline bool same(const IpRange &one, const IpRange &other)
{
    return to_string(one) == to_string(other);
}

inline bool same(const ProviderRule &one, const ProviderRule &other)
{
    return one.name == other.name && one.key_file.path == other.key_file.path && one.host == other.host;
}

inline bool same(const SaidLimit &one, const SaidLimit &other)
{
    return one.amount == other.amount;
}

inline bool same(const PolicyWord &one, const PolicyWord &other)
{
    return one.text == other.text;
}

template <typename Scalar>
requires(std::is_enum_v<Scalar> || std::is_same_v<Scalar, bool>) bool same(Scalar one, Scalar other)
{
    return one == other;
}

template <typename Item>
bool same(const std::vector<Item> &some, const std::vector<Item> &others)
{
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](const Item &one, const Item &other) { return same(one, other); });
}

inline bool same(const HomeDirectories &one, const HomeDirectories &other)
{
    return same(one.paths, other.paths) && one.best_effort == other.best_effort;
}

inline bool same(const NetworkPolicy &one, const NetworkPolicy &other)
{
    return one.mode == other.mode && same(one.allowed, other.allowed) && same(one.hosts, other.hosts) &&
           same(one.may_grant, other.may_grant);
}

template <typename Value>
bool same(const std::optional<Value> &one, const std::optional<Value> &other)
{
    return one && other ? same(*one, *other) : one.has_value() == other.has_value();
}

} // namespace pi_agent
