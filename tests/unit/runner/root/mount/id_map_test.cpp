// The id map that exchanges two ids: runner/root/mount/mounts.hpp
#include "runner/root/mount/mounts.hpp"

#include "common/base/error.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fstream>
#include <limits>
#include <sched.h>
#include <sstream>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace id_map_test {

namespace {

constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max() - 1; // the last id that is one

struct Extent {
    std::uint64_t inside, outside, count;
};

std::vector<Extent> extents_of(const std::string &text)
{
    std::istringstream lines(text);
    std::vector<Extent> extents;
    for (Extent extent{}; lines >> extent.inside >> extent.outside >> extent.count;)
        extents.push_back(extent);
    return extents;
}

// Where `id` is mapped to; -1 for nowhere, -2 when two extents hold it.
std::int64_t map_id(const std::vector<Extent> &extents, std::uint64_t id)
{
    std::int64_t result = -1;
    for (const auto &extent : extents) {
        if (id < extent.inside || id - extent.inside >= extent.count) continue;
        if (result != -1) return -2;
        result = static_cast<std::int64_t>(extent.outside + (id - extent.inside));
    }
    return result;
}

} // namespace

TEST_CASE("the map is written as the kernel reads it")
{
    struct Row {
        std::uint32_t first, second;
        std::string text;
    };
    const std::vector<Row> rows = {
        {1000, 2000, "0 0 1000\n1000 2000 1\n1001 1001 999\n2000 1000 1\n2001 2001 4294965294\n"},
        {2000, 1000, "0 0 1000\n1000 2000 1\n1001 1001 999\n2000 1000 1\n2001 2001 4294965294\n"},
        {1000, 1001, "0 0 1000\n1000 1001 1\n1001 1000 1\n1002 1002 4294966293\n"},
        {0, 1, "0 1 1\n1 0 1\n2 2 4294967293\n"},
        {0, 2, "0 2 1\n1 1 1\n2 0 1\n3 3 4294967292\n"},
        {1, 2, "0 0 1\n1 2 1\n2 1 1\n3 3 4294967292\n"},
        {0, most, "0 4294967294 1\n1 1 4294967293\n4294967294 0 1\n"},
        {most - 1, most, "0 0 4294967293\n4294967293 4294967294 1\n4294967294 4294967293 1\n"},
        {7, 7, "0 0 4294967295\n"},
        {0, 0, "0 0 4294967295\n"},
        {most, most, "0 0 4294967295\n"},
    };
    for (const auto &row : rows) {
        CAPTURE(row.first);
        CAPTURE(row.second);
        CHECK(swap_map(row.first, row.second) == row.text);
    }
}

TEST_CASE("every id is mapped once: two exchanged, all others to themselves")
{
    const std::vector<std::uint32_t> ids = {0, 1, 2, 999, 1000, 1001, 65534, 2147483647, 2147483648U, most - 1, most};
    for (const auto first : ids) {
        for (const auto second : ids) {
            CAPTURE(first);
            CAPTURE(second);
            const auto extents = extents_of(swap_map(first, second));
            std::uint64_t total = 0;
            for (const auto &extent : extents) {
                CHECK(extent.count > 0);
                total += extent.count;
            }
            CHECK(total == 4'294'967'295);
            for (const auto id : ids)
                CHECK(map_id(extents, id) == (id == first ? second : id == second ? first : id));
            CHECK(map_id(extents, 4'294'967'295) == -1); // "no id" stays unmapped
        }
    }
}

TEST_CASE("there is no map for the value that means no id")
{
    CHECK(failure_of([] { return swap_map(most + 1, 1000); }).status == 70);
    CHECK(failure_of([] { return swap_map(1000, most + 1); }).status == 70);
    CHECK(failure_of([] { return swap_map(most + 1, most + 1); }).status == 70);
}

TEST_CASE("the kernel takes the map, for users and groups" * doctest::skip(not_root()))
{
    const Account user{"user", Uid(12345), Gid(54321), "/", {}};
    const Account agent{"agent", Uid(99), Gid(98), "/", {}};
    const std::string seen = in_child([&] {
        const UniqueFd map = make_id_map(AsRoot::claim(), user, agent);
        if (::setns(map.get(), CLONE_NEWUSER) != 0) throw_errno("setns");
        std::string text;
        for (const std::string name : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
            std::ifstream file(name);
            for (const auto &extent : extents_of(std::string(std::istreambuf_iterator<char>(file), {})))
                text += std::to_string(extent.inside) + " " + std::to_string(extent.outside) + " " + std::to_string(extent.count) + "\n";
            text += "-\n";
        }
        return text;
    });
    CHECK(seen == swap_map(12345, 99) + "-\n" + swap_map(54321, 98) + "-\n");
}

TEST_CASE("the map leaves no process behind" * doctest::skip(not_root()))
{
    const Account user{"user", Uid(12345), Gid(12345), "/", {}};
    const Account agent{"agent", Uid(99), Gid(99), "/", {}};
    CHECK(in_child([&] {
              const UniqueFd map = make_id_map(AsRoot::claim(), user, agent);
              const bool childless = ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
              return std::string(map.is_open() && childless ? "none" : "some");
          }) == "none");
}

} // namespace id_map_test
