// The kernel's files of a group, held against the limits that are said: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include "support/failure.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <map>

using namespace pi_agent;
using namespace pi_agent::test;

namespace limits_check_test {

namespace {

using Files = std::map<std::string, std::string>;

const Files in_force{{"memory.max", "1073741824\n"}, {"memory.swap.max", "0\n"}, {"pids.max", "128\n"}, {"cpu.max", "50000 100000\n"}};

// What is said of a group with these files under `limits: {memory: 1G, tasks: 128, cpu: 50%}`, or of others; empty when nothing is.
std::string refusal(const Files &changed, const std::string &section = "{memory: 1G, tasks: 128, cpu: 50%}")
{
    const TemporaryDirectory directory;
    Files files = in_force;
    for (const auto &[name, text] : changed)
        files[name] = text;
    for (const auto &[name, text] : files)
        if (!text.empty()) std::ofstream(directory.path() + "/" + name) << text;
    const LimitsPolicy limits = parse("version: 1\nusers: {alice: {roots: [/srv/a]}}\nlimits: " + section + "\n").limits;
    const Caught caught = failure_of([&] {
        require_limits_in({directory.path(), true}, limits, "where is it?");
        return 0;
    });
    CHECK((caught.text.empty() || caught.status == 69));
    return caught.text;
}

} // namespace

TEST_CASE("limits that are in force, or narrower ones, are fine")
{
    CHECK(refusal({}) == "");
    CHECK(refusal({{"memory.max", "4096\n"}, {"pids.max", "0\n"}, {"cpu.max", "1000 100000\n"}}) == "");
    CHECK(refusal({{"memory.swap.max", ""}}) == ""); // no accounts of swap
}

TEST_CASE("no limit, a wider one and a file that is not there are refused with the limit's name and place")
{
    for (const char *text : {"max\n", "2147483648\n", "", "\n", "-1\n"})
        CHECK_MESSAGE(has(refusal({{"memory.max", text}}), "does not enforce the policy's limits.memory: 1G (p.yaml:3:18)"), text);
    CHECK(has(refusal({{"memory.swap.max", "max\n"}}), "limits.memory: 1G"));
    for (const char *text : {"max\n", "129\n", ""})
        CHECK_MESSAGE(has(refusal({{"pids.max", text}}), "limits.tasks: 128 (p.yaml:3:29)"), text);
    for (const char *text : {"max 100000\n", "51000 100000\n", "50000 0\n", "50000\n", ""})
        CHECK_MESSAGE(has(refusal({{"cpu.max", text}}), "limits.cpu: 50% (p.yaml:3:39)"), text);
}

TEST_CASE("only what is said is asked for")
{
    const Files nothing{{"memory.max", ""}, {"memory.swap.max", ""}, {"pids.max", ""}, {"cpu.max", ""}};
    CHECK(refusal(nothing, "{}") == "");
    CHECK(refusal(nothing, "{runtime: 1h, sessions: 2}") == "");
    CHECK(has(refusal(nothing, "{tasks: 128}"), "limits.tasks"));
}

TEST_CASE("a share is held against this host's memory")
{
    CHECK(refusal({{"memory.max", "4096\n"}}, "{memory: 50%}") == "");
    CHECK(has(refusal({{"memory.max", "9223372036854771712\n"}}, "{memory: 50%}"), "limits.memory: 50%"));
}

} // namespace limits_check_test
