// The mount points of what is protected, as a table: runner/root/view/root_tree.hpp
#include "runner/root/view/root_tree.hpp"

#include "runner/plan/sandbox_plan.hpp"
#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace protect_test {

namespace {

using Points = std::map<std::string, PointKind>;
constexpr PointKind prefix = PointKind::prefix;
constexpr PointKind read_only = PointKind::read_only;

} // namespace

TEST_CASE("every directory above a protected path is a mount point of its own")
{
    CHECK(plan_points({"app/.git/hooks", "app/.git/config"}) ==
          Points{{"app", prefix}, {"app/.git", prefix}, {"app/.git/config", read_only}, {"app/.git/hooks", read_only}});
    CHECK(plan_points({}).empty());
}

TEST_CASE("what lies in a protected directory needs no mount point of its own")
{
    CHECK(plan_points({"a/b/c", "a", "a-b", "a/d"}) == Points{{"a", read_only}, {"a-b", read_only}});
    CHECK(plan_points({"a", "a/b/c"}) == Points{{"a", read_only}});
}

TEST_CASE("more mount points than the limit are refused, not left out")
{
    std::vector<std::string> paths;
    for (std::size_t index = 0; index < guard_limit; ++index)
        paths.push_back("a" + std::to_string(index));
    CHECK(plan_points(paths).size() == guard_limit);
    paths.emplace_back("b");
    CHECK(failure_of([&] { return plan_points(paths); }).status == 75);
    CHECK(plan_points(paths, {}, protect_limit).size() == guard_limit + 1); // in the session's own mount table
}

TEST_CASE("a directory that must stay is a mount point with all above it, and can be written")
{
    CHECK(plan_points({}, {"a/b", ""}) == Points{{"a", prefix}, {"a/b", prefix}});
    CHECK(plan_points({"a"}, {"a/b"}) == Points{{"a", read_only}});
}

} // namespace protect_test
