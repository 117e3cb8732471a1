// Giving memory back: common/base/files.hpp
#include "common/base/files.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace pi_agent;

namespace idle_memory_test {

namespace {

// Kibibytes in memory, of mappings with these permissions (proc(5), smaps); "" for all.
long resident(const std::string &permissions)
{
    std::ifstream maps("/proc/self/smaps");
    long sum = 0;
    bool counts = false;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::string first;
        std::string second;
        words >> first >> second;
        if (first.back() != ':')
            counts = permissions.empty() || second == permissions;
        else if (first == "Rss:" && counts)
            sum += std::stol(second);
    }
    return sum;
}

} // namespace

TEST_CASE("pages of code go, and come back where they are needed")
{
    const long before = resident("r-xp");
    release_start_up_memory();
    const long after = resident("r-xp");
    CHECK(after < before * 3 / 4);
    CHECK(std::to_string(before) != std::to_string(after));
}

#if !defined(__SANITIZE_ADDRESS__) // whose allocator gives nothing back
TEST_CASE("what was allocated and freed goes, and what is in use stays")
{
    std::string kept; // on top of what is freed, so that the heap cannot shrink by itself
    {
        std::vector<std::unique_ptr<std::string>> many;
        for (int index = 0; index < 40'000; ++index)
            many.push_back(std::make_unique<std::string>(200, 'x'));
        kept.assign(100'000, 'k');
    }
    const long before = resident("");
    release_start_up_memory();
    CHECK(resident("") < before - 4096);
    CHECK(kept == std::string(100'000, 'k'));
}
#endif

} // namespace idle_memory_test
