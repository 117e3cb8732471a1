// How deep JSON text nests: common/base/text.hpp
#include "common/base/text.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace json_depth_test {

TEST_CASE("objects and lists count, and what lies in a string does not")
{
    for (const std::string two : {"{\"a\":[]}", "[[],[],{}]", "[{\"[[[\":\"{{{\"}]", "[[\"\\\"[[[\"]]", "[\"\\\\\",[]]", " [ { } ] "}) {
        CAPTURE(two);
        CHECK_FALSE(nests_deeper(two, 2));
        CHECK(nests_deeper(two, 1));
    }
    for (const std::string none : {"", "1", "\"[[\"", "null"})
        CHECK_FALSE(nests_deeper(none, 0));
}

TEST_CASE("text that ends in the middle is looked at to its end")
{
    for (const std::string text : {"\"", "\"\\", "[\"", "]]]", "\"[[[["})
        CHECK_FALSE(nests_deeper(text, 1));
    CHECK(nests_deeper(std::string(100'000, '['), 99'999));
}

} // namespace json_depth_test
