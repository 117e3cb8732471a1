// Whose a process is: runner/root/kernel/host_facts.hpp
#include "runner/root/kernel/host_facts.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace process_account_test {

namespace {

const ExpectedAccount agent{Uid(990), Gid(991), {991, 1500}};

const std::string as_it_is_to_be =
    "Name:\tpi-agent-exec\nUid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nFDSize:\t64\nGroups:\t991 1500 \n"
    "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
    "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t0\n";

// With another text in the place of the first `old`.
std::string with(const std::string &old, const std::string &text)
{
    std::string status = as_it_is_to_be;
    const std::size_t place = status.find(old);
    REQUIRE(place != std::string::npos);
    return status.replace(place, old.size(), text);
}

std::string problem_of(const std::string &status, const ExpectedAccount &expected = agent)
{
    return account_problem(status, expected).value_or("");
}

} // namespace

TEST_CASE("a process with the agent's ids, no more than its groups, and no privilege is as it is to be")
{
    CHECK(problem_of(as_it_is_to_be).empty());
    CHECK(problem_of(with("991 1500 ", "")).empty());
    CHECK(problem_of(with("991 1500 ", "1500")).empty());
}

TEST_CASE("each id, group and privilege that a process has beside those is told")
{
    CHECK(problem_of(with("991 1500 ", "42 1500")) == "Groups: 42 1500");
    CHECK(problem_of(with("990\t990\t990\t990", "990\t990\t0\t990")) == "Uid: 990 990 0 990");
    CHECK(problem_of(with("991\t991\t991\t991", "991\t991\t991\t0")) == "Gid: 991 991 991 0");
    CHECK(problem_of(with("NoNewPrivs:\t1", "NoNewPrivs:\t0")) == "NoNewPrivs: 0");
    for (const std::string set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        CHECK(problem_of(with(set + ":\t0000000000000000", set + ":\t0000000000000400")) == set + ": 0000000000000400");
}

TEST_CASE("what the status of a process does not say once, and as a number, is wrong")
{
    CHECK(problem_of("") == "Uid: ?");
    CHECK(problem_of(with("Groups:", "Grouped:")) == "Groups: ?");
    CHECK(problem_of(with("Groups:\t", "Groups:\t991\nGroups:\t")) == "Groups: ?");
    CHECK(problem_of(with("990\t990\t990\t990", "990\t990\t990")) == "Uid: 990 990 990");
    CHECK(problem_of(with("991 1500 ", "991x")) == "Groups: 991x");
    CHECK(problem_of(with("991 1500 ", "-1")) == "Groups: -1");
    CHECK(problem_of(with("CapEff:\t0000000000000000", "CapEff:\t")) == "CapEff: ");
}

TEST_CASE("what an engine was not told of is not asked for")
{
    ExpectedAccount told = agent;
    told.no_new_privileges = false;
    CHECK(problem_of(with("NoNewPrivs:\t1", "NoNewPrivs:\t0"), told).empty());
    told.no_capabilities = false;
    CHECK(problem_of(with("CapEff:\t0000000000000000", "CapEff:\t0000000000000400"), told).empty());
}

TEST_CASE("a plan's agent may have the groups of its account and of the roots")
{
    SandboxPlan plan{"", Uid(1000), Uid(990), Gid(991), {Gid(1500)}, {991, 992}, "", {}, "", {}, NetworkPolicy{NetworkMode::full, {}, {}}};
    const ExpectedAccount expected = account_of(plan);
    CHECK(expected.user == Uid(990));
    CHECK(expected.groups == std::vector<gid_t>{991, 992, 1500});
    CHECK((expected.no_new_privileges && expected.no_capabilities));
}

} // namespace process_account_test
