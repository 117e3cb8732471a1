// The agent's program: admin/host/host_things.hpp
#include "admin/host/host_things.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace agent_binary_test {

namespace {

std::string place(const std::string &directory, const std::string &program)
{
    const auto chosen = choose_hiding_place(directory, program);
    if (!chosen) return "none";
    return (chosen->whole_tree ? "tree " : "file ") + chosen->path;
}

std::string problems_of_binary(const std::string &path)
{
    Problems problems;
    check_agent_binary(parse("version: 1\nagent: {binary: " + path + "}\nusers: {alice: {roots: [/srv/a]}}\n"), problems);
    try {
        problems.throw_if_any();
    } catch (const PolicyError &error) {
        return error.what();
    }
    return "";
}

} // namespace

TEST_CASE("a tree that holds nothing but the agent is hidden whole")
{
    CHECK(place("/usr/lib/pi-agent/agent/bin", "/usr/lib/pi-agent/agent/bin/pi") == "tree /usr/lib/pi-agent/agent");
    CHECK(place("/usr/lib/pi-agent/agents/pi/1.2.3/bin", "/usr/lib/pi-agent/agents/pi/1.2.3/bin/pi") == "tree /usr/lib/pi-agent/agents");
    CHECK(place("/usr/lib/pi-agent/agent/bin", "/usr/lib/pi-agent/agent/lib/node_modules/x/cli.js") == "tree /usr/lib/pi-agent/agent");
    CHECK(place("/opt/pi/bin", "/opt/pi/bin/pi") == "tree /opt/pi");
    CHECK(place("/opt/vendor/pi/bin", "/opt/vendor/pi/lib/x.js") == "tree /opt/vendor/pi");
}

TEST_CASE("of a program that npm installed the package is hidden, and nothing of others")
{
    CHECK(place("/usr/local/bin", "/usr/local/lib/node_modules/x/cli.js") == "tree /usr/local/lib/node_modules/x");
    CHECK(place("/usr/bin", "/usr/lib/node_modules/@s/x/dist/cli.js") == "tree /usr/lib/node_modules/@s/x");
    CHECK(place("/opt/n/bin", "/opt/n/lib/node_modules/@s/x/dist/cli.js") == "tree /opt/n"); // is a tree of its own
    CHECK(npm_package_of("/a/node_modules/x/node_modules/@s/y/cli.js") == "/a/node_modules/x/node_modules/@s/y");
    for (const auto *path :
         {"/usr/bin/pi", "/a/node_modules/x", "/a/node_modules/@s/x", "/a/node_modules/.bin/pi", "/a/node_modules/", "/node_modulesx/y/z"})
        CHECK_MESSAGE(!npm_package_of(path), path);
}

TEST_CASE("in a shared directory, or where the program is elsewhere, its file alone is hidden")
{
    CHECK(place("/usr/bin", "/usr/bin/pi-real") == "file /usr/bin/pi-real");
    CHECK(place("/usr/local/bin", "/usr/local/lib/node_modules/cli.js") == "file /usr/local/lib/node_modules/cli.js");
    CHECK(place("/opt/bin", "/opt/bin/pi") == "file /opt/bin/pi");
    CHECK(place("/opt/pi", "/opt/pi/pi") == "file /opt/pi/pi");
    CHECK(place("/opt/pi/bin", "/usr/lib/pi/cli.js") == "file /usr/lib/pi/cli.js");
    CHECK(place("/optional/pi/bin", "/optional/pi/bin/pi") == "file /optional/pi/bin/pi");
}

TEST_CASE("nothing in the Nix store is hidden")
{
    CHECK(place("/nix/store/x/bin", "/nix/store/x/bin/pi") == "none");
    CHECK(place("/opt/pi/bin", "/nix/store/x/bin/pi") == "none");
}

TEST_CASE("a program that is absent, a directory, not executable or setuid is an error with its place")
{
    CHECK(problems_of_binary("/usr/bin/env").empty());
    CHECK(contains(problems_of_binary("/usr/no-such/bin/pi"), "p.yaml:2:17: agent.binary: cannot open /usr/no-such: No such file"));
    CHECK(contains(problems_of_binary("/usr/bin"), "agent.binary: '/usr/bin' is not a regular file"));
    CHECK(contains(problems_of_binary("/usr/bin/passwd"), "is setuid or setgid"));
    CHECK(contains(problems_of_binary("/usr/include/stdio.h"), "is not executable"));
}

} // namespace agent_binary_test
