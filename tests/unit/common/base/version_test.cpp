// What is a version, and which one is later: common/base/text.hpp
#include "common/base/text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace version_test {

TEST_CASE("a version is three decimal numbers, written in one way only")
{
    CHECK(parse_version("0.1.0") == Version{0, 1, 0});
    CHECK(parse_version("10.20.999999999") == Version{10, 20, 999'999'999});
    for (const char *text : {"",        ".",      "..",     "...",     "1",         "1.2",    "1.2.",    "1.2.3.",
                             "1.2.3.4", ".1.2",   "1..2",   "v1.2.3",  "1.2.3-rc1", "1.2.x",  "01.2.3",  "1.02.3",
                             "1.2.03",  "1.2.3 ", " 1.2.3", "1.2.3\n", "+1.2.3",    "-1.2.3", "1.2.0x3", "1.2.1000000000",
                             "1,2,3"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_version(text));
    }
    CHECK_FALSE(parse_version(std::string_view("1.2.3\0", 6)));
}

TEST_CASE("versions are compared as numbers, the first one first")
{
    CHECK(Version{0, 9, 0} < Version{0, 10, 0});
    CHECK(Version{0, 10, 0} < Version{1, 0, 0});
    CHECK(Version{1, 2, 9} < Version{1, 2, 10});
    CHECK_FALSE(Version{2, 0, 0} < Version{1, 99, 99});
}

TEST_CASE("a version is written as it is read, and this build has one")
{
    CHECK(to_string(Version{0, 10, 2}) == "0.10.2");
    CHECK(parse_version(to_string(running_version())) == running_version());
}

} // namespace version_test
