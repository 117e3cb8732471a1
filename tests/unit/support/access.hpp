// Who asks, and what a policy grants to them.
#pragma once

#include "common/decide/decision.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pi_agent::test {

// Groups that every Debian has, with their numbers.
constexpr gid_t daemon_group = 1;
constexpr gid_t sys_group = 3;

inline Account account(const std::string &name, std::vector<gid_t> groups = {})
{
    return {name, Uid(1000), Gid(1000), "/home/" + name, std::move(groups)};
}

inline AccessRules granted(const Policy &policy, const Account &caller)
{
    auto result = find_access_rules(policy, caller, "p.yaml");
    REQUIRE(std::holds_alternative<AccessRules>(result));
    return std::get<AccessRules>(std::move(result));
}

} // namespace pi_agent::test
