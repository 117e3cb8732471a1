// The section `sandbox`, and keys that a method cannot honour: common/policy/policy_sections.hpp
#include "common/policy/policy_sections.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_sandbox_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

std::string problems_with(const std::string &text)
{
    return problems_of(head + text);
}

SandboxMethod method_of(const std::string &text)
{
    return parse(head + text).sandbox.method;
}

} // namespace

TEST_CASE("the method is systemd unless the policy says another, by its name")
{
    CHECK(method_of("") == SandboxMethod::systemd);
    CHECK(method_of("sandbox: {method: systemd}\n") == SandboxMethod::systemd);
    CHECK(method_of("sandbox: {method: bwrap}\n") == SandboxMethod::bwrap);
    for (const auto method : {SandboxMethod::systemd, SandboxMethod::bwrap, SandboxMethod::podman, SandboxMethod::none})
        CHECK(method_of(std::string("sandbox: {method: ") + to_string(method) + "}\n") == method);
    CHECK(method_of("sandbox: {method: docker, image: debian}\n") == SandboxMethod::docker);
    CHECK(to_string(parse(head + "sandbox:\n  method: bwrap\n").sandbox.where) == "p.yaml:4:11");
}

TEST_CASE("no method is dropped, guessed or put in the place of another")
{
    for (const auto *name : {"auto", "Systemd", "bubblewrap", "", "[systemd]", "~"})
        CHECK_MESSAGE(contains(problems_with(std::string("sandbox: {method: ") + name + "}\n"), "sandbox.method"), name);
}

TEST_CASE("what bwrap cannot honour is refused with the key's place")
{
    for (const auto *network : {"loopback", "[10.0.0.0/8]"})
        CHECK_MESSAGE(contains(problems_with(std::string("sandbox: {method: bwrap}\nnetwork: ") + network + "\n"),
                               "network: sandbox.method bwrap (p.yaml:3:19) cannot filter addresses"),
                      network);
    for (const auto *network : {"full", "none"})
        CHECK_MESSAGE(problems_with(std::string("sandbox: {method: bwrap}\nnetwork: ") + network + "\n").empty(), network);
}

TEST_CASE("a container of podman's is in a unit, whose addresses systemd filters")
{
    for (const auto *network : {"full", "loopback", "[10.0.0.0/8]", "none"})
        CHECK_MESSAGE(problems_with(std::string("sandbox: {method: podman}\nnetwork: ") + network + "\n").empty(), network);
}

TEST_CASE("docker needs an image, podman takes one, nothing else does, and its name is one")
{
    CHECK(contains(problems_with("sandbox: {method: docker}\n"), "sandbox.image: is missing"));
    CHECK(problems_with("sandbox: {method: podman}\n").empty());
    CHECK(parse(head + "sandbox: {method: podman, image: localhost/tools:1}\n").sandbox.image == "localhost/tools:1");
    for (const std::string method : {"systemd", "bwrap", "none"})
        CHECK(contains(problems_with("sandbox: {method: " + method + ", image: debian}\n"),
                       "sandbox.image: is for the methods docker and podman, and the method is " + method));
    for (const auto *name : {"debian", "debian:12", "host.example:5000/a/b@sha256:0123"})
        CHECK_MESSAGE(parse(head + "sandbox: {method: docker, image: '" + name + "'}\n").sandbox.image == name, name);
    for (const auto *name : {"", "-v", "--privileged", "/etc", "a b", "a?b", "a/../b", "a%2f", "a\nb"})
        CHECK_MESSAGE(contains(problems_with(std::string("sandbox: {method: docker, image: \"") + name + "\"}\n"), "sandbox.image"), name);
}

TEST_CASE("every method takes limits: whether they hold is the host's answer")
{
    for (const std::string method : {"systemd", "bwrap", "podman", "none"})
        CHECK(problems_with("sandbox: {method: " + method + "}\nlimits: {memory: 8G, cpu: 50%, runtime: 1h, sessions: 2}\n").empty());
}

} // namespace policy_sandbox_test
