// What a control group has used: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace unit_usage_test {

TEST_CASE("peak of memory and time of the processors are the kernel's own numbers")
{
    const TemporaryDirectory group;
    std::ofstream(group.path() + "/memory.peak") << "123456789\n";
    std::ofstream(group.path() + "/cpu.stat") << "nice_usec 1\nusage_usec 4500\nuser_usec 4000\n";
    const UnitUsage usage = usage_of({group.path(), true});
    CHECK(usage.memory_peak == 123456789U);
    CHECK(usage.cpu_usec == 4500U);
}

TEST_CASE("what is not there is not known")
{
    const TemporaryDirectory group;
    CHECK_FALSE(usage_of({group.path(), true}).memory_peak);
    CHECK_FALSE(usage_of({group.path() + "/gone", true}).cpu_usec);
    std::ofstream(group.path() + "/cpu.stat") << "usage_usec 4500\n";
    CHECK_FALSE(usage_of({group.path(), false}).cpu_usec);
}

} // namespace unit_usage_test
