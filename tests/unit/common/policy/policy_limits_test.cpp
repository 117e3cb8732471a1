// The section `limits`, as it is written and as it is refused: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_limits_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

LimitsPolicy limits_of(const std::string &section)
{
    return parse(head + "limits: " + section + "\n").limits;
}

std::string problem_of(const std::string &section)
{
    return problems_of(head + "limits: " + section + "\n");
}

} // namespace

TEST_CASE("nothing is said where nothing is written, so that defaults can be told from what the administrator wants")
{
    for (const auto &limits : {parse(head).limits, limits_of("{}")}) {
        CHECK((!limits.memory && !limits.memory_share && !limits.tasks && !limits.cpu && !limits.runtime && !limits.sessions));
        CHECK((!limits.disk && !limits.without_quota));
        CHECK(!said_memory(limits));
    }
}

TEST_CASE("each limit is read with its words and its place")
{
    const auto limits = limits_of("{memory: 8G, tasks: 4096, cpu: 400%, runtime: 12h, sessions: 8}");
    CHECK(limits.memory->amount == std::uint64_t{8} << 30U);
    CHECK(limits.memory->text == "8G");
    CHECK(to_string(limits.memory->where) == "p.yaml:3:18");
    CHECK(said_memory(limits)->text == "8G");
    CHECK(limits.tasks->amount == 4096);
    CHECK(limits.cpu->amount == 400);
    CHECK(limits.cpu->text == "400%");
    CHECK(limits.runtime->amount == 12 * 3600);
    CHECK(limits.sessions->amount == 8);
    CHECK(to_string(limits.sessions->where) == "p.yaml:3:70");
}

TEST_CASE("amounts of memory are powers of 1024, or a share")
{
    CHECK(limits_of("{memory: 300000K}").memory->amount == std::uint64_t{300000} << 10U);
    CHECK(limits_of("{memory: 128M}").memory->amount == least_memory);
    CHECK(limits_of("{memory: 1T}").memory->amount == std::uint64_t{1} << 40U);
    CHECK(limits_of("{memory: \"2G\"}").memory->amount == std::uint64_t{2} << 30U);
    const auto share = limits_of("{memory: 50%}");
    CHECK(!share.memory);
    CHECK(share.memory_share->amount == 50);
    CHECK(said_memory(share)->text == "50%");
    CHECK(limits_of("{memory: 100%}").memory_share->amount == 100);
}

TEST_CASE("disk space is an amount, with what starts do where nothing holds it")
{
    const auto limits = limits_of("{disk: 10G, disk_without_quota: refuse}");
    CHECK(limits.disk->amount == std::uint64_t{10} << 30U);
    CHECK(limits.disk->text == "10G");
    CHECK(to_string(limits.disk->where) == "p.yaml:3:16");
    CHECK(limits.without_quota == WithoutQuota::refuse);
    for (const auto *disk : {"10", "10GB", "50%", "-1G", "0x10G", "many", "[10G]"})
        CHECK_MESSAGE(contains(problem_of("{disk: " + std::string(disk) + "}"), "limits.disk: must be a whole number with K, M, G or T"),
                      disk);
    CHECK(contains(problem_of("{disk: 63M}"), "limits.disk: 63M is out of bounds; say at least 64M"));
    CHECK(contains(problem_of("{disk: 1025T}"), "limits.disk: 1025T is out of bounds"));
    CHECK(contains(problem_of("{disk_without_quota: measure}"), "limits.disk_without_quota: unknown value 'measure'; use tell or refuse"));
}

TEST_CASE("open files are a plain number, within what a kernel gives")
{
    const auto limits = limits_of("{files: 8192}");
    CHECK(limits.files->amount == 8192);
    CHECK(to_string(limits.files->where) == "p.yaml:3:17");
    CHECK(limits_of("{files: 256}").files->amount == 256);
    for (const auto *files : {"255", "0", "1048577"})
        CHECK_MESSAGE(
            contains(problem_of("{files: " + std::string(files) + "}"), "limits.files: " + std::string(files) + " is out of bounds"),
            files);
    for (const auto *files : {"8K", "many", "'8192'", "[8192]"})
        CHECK_MESSAGE(contains(problem_of("{files: " + std::string(files) + "}"), "limits.files: must be a whole number of open files"),
                      files);
}

TEST_CASE("times have one unit")
{
    CHECK(limits_of("{runtime: 10s}").runtime->amount == 10);
    CHECK(limits_of("{runtime: 90m}").runtime->amount == 5400);
    CHECK(limits_of("{runtime: 365d}").runtime->amount == std::uint64_t{365} * 24 * 3600);
}

TEST_CASE("what is no amount is refused with the way to write one, never read as something near it")
{
    for (const auto *memory : {"8",  "8GB",  "8g",  "8 G",      "8.5G", "1e9", "-8G",  "+8G",     "08G",  "0x10G", "G", "%",
                               "''", "8G8G", "max", "infinity", "8Gi",  "8E",  "[8G]", "{a: 8G}", "true", "~",     ""})
        CHECK_MESSAGE(contains(problem_of("{memory: " + std::string(memory) + "}"), "p.yaml:3:"), memory);
    for (const auto *tasks : {"010", "-1", "1.5", "1e3", "'4096'", "4096K", "many", "0x100", "+64", "[64]", "50%", ""})
        CHECK_MESSAGE(contains(problem_of("{tasks: " + std::string(tasks) + "}"), "limits.tasks: must be a whole number"), tasks);
    for (const auto *cpu : {"400", "4", "1.5%", "-100%", "0100%", "400 %", "2cpus"})
        CHECK_MESSAGE(contains(problem_of("{cpu: " + std::string(cpu) + "}"), "limits.cpu: must be a whole number with %"), cpu);
    for (const auto *runtime : {"12", "12H", "1h30m", "-1h", "01h", "1w", "12:00", "h", "1.5h"})
        CHECK_MESSAGE(
            contains(problem_of("{runtime: " + std::string(runtime) + "}"), "limits.runtime: must be a whole number with s, m, h or d"),
            runtime);
    CHECK(
        contains(problem_of("{memory: 8GB}"),
                 "p.yaml:3:18: limits.memory: must be a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), "
                 "e.g. 8G or 50%, found the text '8GB'; correct it, or remove the key"));
    CHECK(contains(problem_of("{memory: 1.5%}"),
                   "limits.memory: must be a whole number with K, M, G or T (powers of 1024), or with % (of the host's memory), e.g. 8G or "
                   "50%, found the text '1.5%'; correct it, or remove the key"));
}

TEST_CASE("what is too little or too much is refused with the bounds")
{
    for (const auto *memory : {"0G", "0%", "1K", "127M", "101%", "1025T", "18446744073709551615T", "99999999999999999999999G"})
        CHECK_MESSAGE(contains(problem_of("{memory: " + std::string(memory) + "}"), " is out of bounds; say "), memory);
    CHECK(contains(problem_of("{memory: 100M}"),
                   "limits.memory: 100M is out of bounds; say at least 128M, as the agent itself takes more than half of that"));
    for (const auto *tasks : {"0", "31", "4194305", "18446744073709551616"})
        CHECK_MESSAGE(
            contains(problem_of("{tasks: " + std::string(tasks) + "}"), "limits.tasks: " + std::string(tasks) + " is out of bounds"),
            tasks);
    for (const auto *cpu : {"0%", "9%", "100001%"})
        CHECK_MESSAGE(contains(problem_of("{cpu: " + std::string(cpu) + "}"), "limits.cpu: " + std::string(cpu) + " is out of bounds"),
                      cpu);
    for (const auto *runtime : {"0s", "9s", "0d", "366d", "8761h", "18446744073709551615d"})
        CHECK_MESSAGE(contains(problem_of("{runtime: " + std::string(runtime) + "}"),
                               "limits.runtime: " + std::string(runtime) + " is out of bounds"),
                      runtime);
    for (const auto *sessions : {"0", "65"})
        CHECK_MESSAGE(contains(problem_of("{sessions: " + std::string(sessions) + "}"),
                               "limits.sessions: " + std::string(sessions) + " is out of bounds; say between 1 and 64"),
                      sessions);
}

TEST_CASE("the section is a mapping of known keys")
{
    CHECK(contains(problem_of("8G"), "limits: must be a mapping"));
    CHECK(contains(problem_of("{memry: 8G}"), "limits.memry: unknown key; did you mean 'memory'?"));
    CHECK(contains(problem_of("{memory: 8G, memory: 9G}"), "limits.memory"));
}

} // namespace policy_limits_test
