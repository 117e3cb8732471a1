// Hosts with more processors than one set has room for: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/failure.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <vector>

using namespace pi_agent;
using namespace pi_agent::test;

namespace processors_test {

namespace {

// A kernel for so many processors, of which the last one may be used.
AskForProcessors kernel_for(std::size_t processors, std::vector<std::size_t> &asked)
{
    return [processors, &asked](pid_t, std::size_t size, cpu_set_t *sets) {
        asked.push_back(size);
        if (size * 8 < processors) {
            errno = EINVAL;
            return -1;
        }
        CPU_ZERO_S(size, sets);
        CPU_SET_S(processors - 1, size, sets);
        return 0;
    };
}

} // namespace

TEST_CASE("the processors of a host are known however many its kernel can have")
{
    for (const std::size_t processors : {1U, 1024U, 1025U, 2048U, 5120U, 8192U, 262144U}) {
        CAPTURE(processors);
        std::vector<std::size_t> asked;
        const std::vector<cpu_set_t> sets = processors_of(1, kernel_for(processors, asked));
        const std::size_t size = sets.size() * sizeof(cpu_set_t);
        CHECK(CPU_COUNT_S(size, sets.data()) == 1);
        CHECK(CPU_ISSET_S(processors - 1, size, sets.data()));
        CHECK(asked.size() <= 9);
    }
}

TEST_CASE("a kernel that answers no question about its processors ends the start, and not the questions of it")
{
    std::vector<std::size_t> asked;
    const std::string always = failure_of([&] { processors_of(1, kernel_for(1'000'000, asked)); }).text;
    CHECK(always.find("reading the processors of process 1") != std::string::npos);
    CHECK(asked.size() == 9);
    int times = 0;
    const auto refuse = [&](pid_t, std::size_t, cpu_set_t *) {
        ++times;
        errno = ESRCH;
        return -1;
    };
    CHECK(failure_of([&] { processors_of(1, refuse); }).text.find("No such process") != std::string::npos);
    CHECK(times == 1);
}

TEST_CASE("this host's own are what the kernel says")
{
    cpu_set_t one;
    REQUIRE(::sched_getaffinity(0, sizeof one, &one) == 0);
    const std::vector<cpu_set_t> sets = processors_of(0);
    CHECK(CPU_COUNT_S(sets.size() * sizeof(cpu_set_t), sets.data()) == CPU_COUNT(&one));
}

} // namespace processors_test
