// What a user's shell says of pi: admin/diagnose/faults.hpp
#include "admin/diagnose/faults.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace user_faults_test {

namespace {

std::string faults_of(const std::string &output)
{
    std::string text;
    for (const auto &fault : judge_shell(output, "alice", "pi", {"/usr/bin/pi", "/bin/pi"}))
        text += fault.about + ": " + fault.what + "\n";
    return text;
}

} // namespace

TEST_CASE("a shell that finds the wrapper, among whatever else it says, is fine")
{
    CHECK(faults_of("Welcome!\n\npi-agent-found:/usr/bin/pi\nbash: no job control\n") == "");
    CHECK(faults_of("pi-agent-found:/bin/pi\n") == ""); // by another name of its
}

TEST_CASE("another program, an alias, and none at all")
{
    CHECK(faults_of("pi-agent-found:/home/alice/bin/pi\n") ==
          "other-pi: alice's shell starts /home/alice/bin/pi, which is not the wrapper: what it runs is not confined\n");
    CHECK(faults_of("pi-agent-home:/home/alice/.bun/bin/pi\npi-agent-found:/usr/bin/pi\n") ==
          "other-pi: alice has /home/alice/.bun/bin/pi, which is not the wrapper: what it runs is not confined\n");
    CHECK(faults_of("pi-agent-found:alias pi='x\x1b[m'\n") ==
          "other-pi: the login shell of alice has an alias or a function pi: alias pi='x\\x1b[m'\n");
    CHECK(faults_of("pi-agent-found:\n") == "no-pi: the login shell of alice finds no pi\n");
}

TEST_CASE("each is named once, wherever it was found")
{
    CHECK(faults_of("pi-agent-home:/home/alice/bin/pi\npi-agent-found:/home/alice/bin/pi\n") ==
          "other-pi: alice has /home/alice/bin/pi, which is not the wrapper: what it runs is not confined\n");
}

} // namespace user_faults_test
