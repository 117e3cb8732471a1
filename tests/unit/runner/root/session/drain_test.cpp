// A host that is drained, and who may start a canary on it: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "runner/root/door/admission.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace drain_test {

namespace {

// Runs it in an empty /run and compares.
void check_in_private_run(const std::function<std::string(const AsRoot &)> &task, const std::string &expected)
{
    const std::string said = in_private_run([&] { return task(AsRoot::claim()); });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == expected);
}

std::string answer_to(const AsRoot &root, const Account &caller, std::optional<Program> program)
{
    return std::to_string(failure_of([&] {
                              require_not_drained(root, caller, program);
                              return 0;
                          }).status) +
           " ";
}

const Account alice = {"alice", Uid(1000), Gid(1000), "/home/alice", {1000}};
const Account bob = {"bob", Uid(1001), Gid(1001), "/home/bob", {1001}};

} // namespace

TEST_CASE("a drain is found with its words until it ends, in a file for root alone" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            std::string text = find_drain(root) ? "drained " : "open ";
            begin_drain(root, "");
            text += find_drain(root)->message.empty() ? "without words, " : "with words, ";
            begin_drain(root, "a new kernel");
            text += find_drain(root)->message + ", ";
            struct stat facts {};
            if (::stat("/run/pi-agent/drain", &facts) != 0) return std::string("no file");
            text += std::to_string(facts.st_uid) + " " + std::to_string(facts.st_mode & 07777U) + ", ";
            text += end_drain(root) ? "ended " : "not ended ";
            text += end_drain(root) ? "ended " : "not ended ";
            return text + (find_drain(root) ? "drained" : "open");
        },
        "open without words, a new kernel, 0 " + std::to_string(0600) + ", ended not ended open");
}

TEST_CASE("on a drained host nothing starts but canaries of the user as whom root tries the sandbox" * doctest::skip(not_root()))
{
    check_in_private_run(
        [](const AsRoot &root) {
            std::string text = answer_to(root, alice, std::nullopt) + answer_to(root, alice, Program::agent);
            begin_drain(root, "");
            for (const auto program : {std::optional<Program>(), std::optional(Program::agent), std::optional(Program::canary)})
                text += answer_to(root, alice, program);
            {
                const auto pass = let_canary_start(root, alice.uid);
                const auto another = let_canary_start(root, alice.uid); // doctor and apply at once
                for (const auto program : {std::optional<Program>(), std::optional(Program::canary), std::optional(Program::agent),
                                           std::optional(Program::shell)})
                    text += answer_to(root, alice, program);
                text += answer_to(root, bob, Program::canary);
            }
            return text + answer_to(root, alice, Program::canary);
        },
        "0 0 75 75 75 0 0 75 75 75 75 ");
}

} // namespace drain_test
