// The key `placement` of a policy, and what srun is asked for: common/decide/decision.hpp
#include "common/decide/decision.hpp"

#include "common/decide/explained.hpp"
#include "common/policy/policy_paths.hpp"
#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace placement_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [~/projects]}}\n";

std::string joined(const std::vector<std::string> &arguments)
{
    return fmt::format("{}", fmt::join(arguments, " "));
}

} // namespace

TEST_CASE("sessions run on this host unless the policy says otherwise")
{
    CHECK(!has_jobs(parse(head)));
    CHECK(!has_jobs(parse(head + "placement: {engine: none, partition: all}\n")));
    CHECK(has_jobs(parse(head + "placement: {engine: slurm}\n")));
    CHECK(srun_of(parse(head)) == "/usr/bin/srun");
    CHECK(srun_of(parse(head + "placement: {srun: /opt/slurm/bin/srun}\n")) == "/opt/slurm/bin/srun");
}

TEST_CASE("srun asks for one task on one node, with what the policy says of job and limits, each as one argument")
{
    const auto plain = srun_arguments(parse(head + "placement: {engine: slurm}\n"), {"/usr/bin/pi", "--option"});
    CHECK(joined(plain) == "--nodes=1 --ntasks=1 --job-name=pi --chdir=/ --quiet /usr/bin/pi --option");
    const auto policy = parse(head + "placement: {engine: slurm, partition: 'a,b', account: team, qos: high, constraint: '[x&y|z*2]'}\n"
                                     "limits: {memory: 262145K, cpu: 250%, runtime: 90s}\n");
    CHECK(joined(job_options(policy, "name")) ==
          "--nodes=1 --ntasks=1 --job-name=name --mem=257M --cpus-per-task=3 --time=2 --partition=a,b "
          "--account=team --qos=high --constraint=[x&y|z*2]");
}

TEST_CASE("what a job asks for is a word, and srun a path")
{
    for (const auto *word : {"gpu", "a.b_c-1", "one,two", "x&y", "[rack1|rack2]", "gpu:2"})
        CHECK_MESSAGE(!problem_of_job_word(word), word);
    for (const auto *word : {"-p", "--uid=0", "a b", "$HOME", "`id`", "a;b", "a'b", "a\"b", "\xc3\xa4"})
        CHECK_MESSAGE(problem_of_job_word(word), word);
    CHECK(problem_of_job_word(std::string(256, 'a')));
    CHECK(!problem_of_absolute("/usr/bin/srun"));
    for (const auto *path : {"srun", "~/srun", "/usr/../srun", "/usr//srun"})
        CHECK_MESSAGE(problem_of_absolute(path), path);
}

TEST_CASE("the program is the whole policy's, the rest also a user's")
{
    CHECK_THROWS_WITH_AS(parse("version: 1\nusers: {alice: {roots: [~/projects], placement: {srun: /srun}}}\n"),
                         doctest::Contains("users.alice.placement.srun: unknown key"), PolicyError);
    CHECK(parse("version: 1\nusers: {alice: {roots: [~/projects], placement: {engine: slurm}}}\n").users.size() == 1);
}

} // namespace placement_test
