// Lays one level over the other.
#include "common/decide/effective.hpp"

#include "common/policy/policy_levels.hpp"

#include <utility>

namespace pi_agent {

namespace {

Policy laid_over(Policy outer, const Rules &inner)
{
    if (inner.places.empty()) return outer;
    Problems problems;
    lay_over(outer, inner, problems);
    problems.throw_if_any();
    return outer;
}

} // namespace

Policy policy_for(Policy policy, const AccessRules &access)
{
    return laid_over(std::move(policy), access.rules);
}

Policy policy_in(Policy callers, const RootSpec &root)
{
    return laid_over(std::move(callers), rules_of(root.rules));
}

} // namespace pi_agent
