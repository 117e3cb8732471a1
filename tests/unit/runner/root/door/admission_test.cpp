// What no grant of a policy is good for: runner/root/door/admission.hpp
#include "runner/root/door/admission.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace admission_test {

namespace {

Account account_in(gid_t group)
{
    return {"alice", Uid(1000), Gid(group), "/home/alice", {group}};
}

Caught caught_of(std::optional<Gid> by_group, const Account &caller)
{
    return failure_of([&] {
        require_harmless_grant(caller, "/srv/app", by_group);
        return 0;
    });
}

} // namespace

TEST_CASE("a root that only a group grants which opens the host is refused")
{
    const Account alice = account_in(1000);
    const Caught caught = caught_of(Gid(0), alice);
    CHECK(caught.status == 78);
    CHECK(has(caught.text, "the root /srv/app is granted by a group whose members control the host"));
    for (const auto &harmless : {std::optional<Gid>(), std::optional(Gid(60001))})
        CHECK(caught_of(harmless, alice).status == 0);
}

TEST_CASE("a user whose primary group is root's is denied")
{
    const Caught caught = caught_of(std::nullopt, account_in(0));
    CHECK(caught.status == 77);
    CHECK(has(caught.text, "the primary group of alice is root's group"));
}

} // namespace admission_test
