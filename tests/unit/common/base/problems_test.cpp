// Diagnostics: their number, suggestions and quotes: common/base/error.hpp
#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace problems_test {

TEST_CASE("suggests the word that was probably meant, and only that")
{
    CHECK(did_you_mean("usres", {"users", "agent"}) == "; did you mean 'users'?");
    CHECK(did_you_mean("raots", {"roots", "run_as"}) == "; did you mean 'roots'?");
    CHECK(did_you_mean("per_user", {"shared", "per-user"}) == "; did you mean 'per-user'?");
    CHECK(did_you_mean("hideDirectBinary", {"enable", "hide_direct_binary"}) == "; did you mean 'hide_direct_binary'?");
    CHECK(did_you_mean("colour", {"users", "agent"}).empty());
    CHECK(did_you_mean(std::string(100000, 'x'), {"users"}).empty());
}

TEST_CASE("quotes escape and cut what is quoted")
{
    CHECK(quote("a\nb") == "'a\\x0ab'");
    CHECK(quote(std::string(100, 'x')) == "'" + std::string(80, 'x') + "...'");
}

TEST_CASE("knows what was reported of a key, and of no key that begins like it")
{
    Problems problems;
    problems.add({"p.yaml", 1, 1}, "users.alice", "bad", "");
    CHECK(problems.has("users.alice"));
    CHECK_FALSE(problems.has("users"));
}

TEST_CASE("a hundred problems are enough")
{
    Problems problems;
    for (int index = 0; index < 100000; ++index)
        problems.add({"p.yaml", index, 1}, "k", "bad", "");
    try {
        problems.throw_if_any();
        FAIL("expected a PolicyError");
    } catch (const PolicyError &error) {
        CHECK(error.diagnostics().size() == 101);
        CHECK(error.diagnostics().back().problem == "more problems follow");
        CHECK(error.status() == ExitStatus::configuration);
    }
}

} // namespace problems_test
