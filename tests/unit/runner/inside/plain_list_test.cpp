// Lists as cp(1) writes them, and others: runner/inside/agent_process.hpp
#include "runner/inside/agent_process.hpp"

#include <doctest/doctest.h>
#include <utility>

using namespace pi_agent;

namespace plain_list_test {

TEST_CASE("a list of owner, group and others is a mode, and no other is")
{
    const PlainList usual{2, {{0x01, 7, ~0U}, {0x04, 5, ~0U}, {0x20, 4, ~0U}}};
    CHECK(mode_of(usual) == 0754);
    PlainList other = usual;
    other.version = 1;
    CHECK_FALSE(mode_of(other));
    other = usual;
    other.entries[1].who = 0x02; // a user by name
    CHECK_FALSE(mode_of(other));
    other = usual;
    other.entries[2].may = 8;
    CHECK_FALSE(mode_of(other));
    other = usual;
    std::swap(other.entries[0], other.entries[1]);
    CHECK_FALSE(mode_of(other));
}

} // namespace plain_list_test
