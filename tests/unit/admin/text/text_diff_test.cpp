// The difference of texts: admin/text/terminal.hpp
#include "admin/text/terminal.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace text_diff_test {

namespace {

std::string numbered(int first, int last)
{
    std::string text;
    for (int line = first; line <= last; ++line)
        text += std::to_string(line) + "\n";
    return text;
}

} // namespace

TEST_CASE("texts that are the same have no difference")
{
    CHECK(text_diff("a", "", "b", "").empty());
    CHECK(text_diff("a", "x\ny\n", "b", "x\ny\n").empty());
}

TEST_CASE("a changed line is shown with three lines around it")
{
    CHECK(text_diff("a", numbered(1, 9), "b", numbered(1, 4) + "five\n" + numbered(6, 9)) == "    --- a\n"
                                                                                             "    +++ b\n"
                                                                                             "    @@ -2,7 +2,7 @@\n"
                                                                                             "     2\n     3\n     4\n"
                                                                                             "    -5\n"
                                                                                             "    +five\n"
                                                                                             "     6\n     7\n     8\n");
}

TEST_CASE("a new file and one that goes are all additions and all removals")
{
    CHECK(text_diff("/dev/null", "", "b", "x\ny\n") == "    --- /dev/null\n    +++ b\n    @@ -0,0 +1,2 @@\n    +x\n    +y\n");
    CHECK(text_diff("a", "x\n", "/dev/null", "") == "    --- a\n    +++ /dev/null\n    @@ -1 +0,0 @@\n    -x\n");
}

TEST_CASE("changes that are far apart have hunks of their own, near ones share one")
{
    const std::string far = text_diff("a", numbered(1, 30), "b", "0\n" + numbered(2, 29) + "31\n");
    CHECK(far.find("    @@ -1,4 +1,4 @@\n    -1\n    +0\n     2\n     3\n     4\n    @@ -27,4 +27,4 @@\n") != std::string::npos);
    const std::string near = text_diff("a", numbered(1, 8), "b", numbered(2, 7));
    CHECK(near == "    --- a\n    +++ b\n    @@ -1,8 +1,6 @@\n    -1\n     2\n     3\n     4\n     5\n     6\n     7\n    -8\n");
}

TEST_CASE("a line that was only moved is taken away and added")
{
    CHECK(text_diff("a", "x\ny\nz\n", "b", "y\nz\nx\n") == "    --- a\n    +++ b\n    @@ -1,3 +1,3 @@\n    -x\n     y\n     z\n    +x\n");
}

TEST_CASE("bytes that a terminal would obey are shown as text")
{
    CHECK(text_diff("a", "", "b", "\x1b[2J\n").find("\\x1b[2J") != std::string::npos);
}

TEST_CASE("a last line without a line feed is told")
{
    CHECK(text_diff("a", "x", "b", "x\n") == "    --- a\n    +++ b\n    @@ -1 +1 @@\n    -x\n    \\ No newline at end of file\n    +x\n");
}

} // namespace text_diff_test
