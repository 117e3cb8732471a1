// Paths as text: common/base/text.hpp
#include "common/base/text.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace path_text_test {

TEST_CASE("a path leads above by its text where any step does")
{
    for (const std::string inside : {"", ".", "a", "a/..", "../a", "a/../../b", "./a//b"})
        CHECK_MESSAGE(!leads_above(inside, 1), inside);
    for (const std::string above : {"../..", "../../a", "a/../../../a/b", "..//./.."})
        CHECK_MESSAGE(leads_above(above, 1), above);
    CHECK(leads_above("../a", 0));
    CHECK(leads_above("a", -2));
}

TEST_CASE("a path is resolved by its text, and stays below the top")
{
    for (const std::string path : {"/a/b", "/a//./b/", "/a/c/../b", "/../a/b", "/x/../../a/b/."})
        CHECK_MESSAGE(resolved_by_text(path) == "/a/b", path);
    for (const std::string top : {"", "/", "/..", "/a/..", "/a/../../."})
        CHECK_MESSAGE(resolved_by_text(top) == "/", top);
}

} // namespace path_text_test
