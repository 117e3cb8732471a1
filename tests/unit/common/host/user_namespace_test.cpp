// A shell in which nothing is root's: common/host/identity.hpp
#include "common/host/identity.hpp"

#include "common/host/beneath.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace user_namespace_test {

TEST_CASE("a namespace without the host's root is known by what seems to be nobody's, and told instead of the owner")
{
    CHECK_FALSE(problem_of_user_namespace());
    const std::string said = in_child([]() -> std::string {
        if (::unshare(CLONE_NEWUSER) != 0) return "not possible here";
        return problem_of_user_namespace().value_or("nothing") + "|" +
               failure_of([] { return open_trusted("/usr/bin/env", O_RDONLY, "program"); }).text;
    });
    if (said == "not possible here") {
        skipped("this place makes no user namespace");
        return;
    }
    CHECK_MESSAGE(has(said, "without the host's root"), said);
    CHECK_MESSAGE(has(said, "the program /usr/bin/env cannot be trusted: this process is in a user namespace"), said);
    CHECK_MESSAGE(!has(said, "belongs to uid"), said);
}

} // namespace user_namespace_test
