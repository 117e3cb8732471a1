// What a policy says of system calls and sockets: common/policy/policy_paths.hpp
#include "common/policy/policy_paths.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace session_calls_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [/srv/a]}}\n";

CallsPolicy calls_of(const std::string &hardening)
{
    return parse(head + "hardening: {" + hardening + "}\n").calls;
}

std::string problems_with(const std::string &hardening)
{
    return problems_of(head + "hardening: {" + hardening + "}\n");
}

} // namespace

TEST_CASE("without the keys nothing is denied, nothing allowed, and all kinds of sockets are there")
{
    const CallsPolicy calls = parse(head).calls;
    CHECK(denied_calls_of(calls).empty());
    CHECK(allowed_calls_of(calls).empty());
    CHECK(address_families_of(calls) == all_address_families);
    CHECK_FALSE(is_allowed_call(calls, "personality"));
}

TEST_CASE("a group stands for its calls, and each name counts once")
{
    CHECK(denied_calls_of(calls_of("deny_system_calls: [memfd_create, '@memlock', mlock]")) ==
          std::vector<std::string>{"memfd_create", "mlock", "mlock2", "mlockall", "munlock", "munlockall"});
    CHECK(allowed_calls_of(calls_of("allow_system_calls: [personality, mincore, personality]")) ==
          std::vector<std::string>{"mincore", "personality"});
    CHECK(is_allowed_call(calls_of("allow_system_calls: [personality]"), "personality"));
    CHECK(address_families_of(calls_of("address_families: [inet6, unix]")) == 0b0101U);
}

TEST_CASE("a call that no program runs without, or that does not exist, cannot be denied")
{
    for (const std::string name :
         {"execve", "openat", "read", "write", "exit_group", "mmap", "no_such_call", "'@no_such_group'", "'@mount'"})
        CHECK_MESSAGE(
            contains(problems_with("deny_system_calls: [" + name + "]"), "is not a system call or group that a policy can refuse"), name);
    CHECK(contains(problems_with("deny_system_calls: [mlockal]"), "did you mean 'mlockall'?"));
    for (const std::string name : {"mount", "ptrace", "personality", "name_to_handle_at"})
        CHECK_MESSAGE(contains(problems_with("deny_system_calls: [" + name + "]"), "is refused in every session"), name);
    CHECK(contains(problems_with("deny_system_calls: mlockall"), "deny_system_calls: must be a list"));
}

TEST_CASE("a call that opens a way out cannot be allowed, and the reason is told at its place")
{
    struct Row {
        const char *name;
        const char *why;
    };
    for (const auto &row : {Row{"mount", "would change what the session sees"},
                            {"umount2", "would change what the session sees"},
                            {"chroot", "would change what the session sees"},
                            {"unshare", "namespaces"},
                            {"setns", "namespaces"},
                            {"clone3", "namespaces"},
                            {"openat2", "no filter can judge"},
                            {"io_uring_setup", "no filter judges"},
                            {"ptrace", "say it with hardening.tracing"},
                            {"process_vm_readv", "say it with hardening.tracing"},
                            {"pidfd_getfd", "would open files"},
                            {"open_by_handle_at", "would open files"},
                            {"keyctl", "keyrings"},
                            {"add_key", "keyrings"},
                            {"bpf", "attacks on the kernel"},
                            {"userfaultfd", "attacks on the kernel"},
                            {"perf_event_open", "attacks on the kernel"},
                            {"kexec_load", "would change the host"},
                            {"init_module", "would change the host"},
                            {"reboot", "would change the host"},
                            {"clock_settime", "would change the host"},
                            {"mlockall", "sessions make anyway"},
                            {"'@mount'", "is a group, and calls are allowed one by one"},
                            {"no_such_call", "is not a call that a policy can allow"},
                            {"personalty", "did you mean 'personality'?"}})
        CHECK_MESSAGE(contains(problems_with(std::string("allow_system_calls: [") + row.name + "]"), row.why), row.name);
    CHECK(contains(problems_with("allow_system_calls: [mincore, mount]"), "p.yaml:3:43: hardening.allow_system_calls[1]: 'mount' "));
}

TEST_CASE("what can be allowed cannot be denied, so the lists never disagree")
{
    std::set<std::string> deniable;
    for (const auto &call : deniable_calls)
        CHECK_MESSAGE(deniable.insert(call.name).second, call.name);
    for (const auto &call : allowable_calls)
        CHECK_MESSAGE(!deniable.contains(call.name), call.name);
}

TEST_CASE("other kinds of sockets cannot be had, and none at all is a mistake")
{
    for (const std::string name : {"packet", "vsock", "alg", "AF_INET", "bluetooth"})
        CHECK_MESSAGE(
            contains(problems_with("address_families: [" + name + "]"), "hardening.address_families[0]: '" + name + "' is not a kind"),
            name);
    CHECK(contains(problems_with("address_families: []"), "hardening.address_families: is empty"));
}

TEST_CASE("the method none filters nothing, so it takes none of the keys")
{
    for (const std::string key : {"deny_system_calls: [mlockall]", "allow_system_calls: [personality]", "address_families: [unix]"}) {
        CHECK_MESSAGE(contains(problems_of(head + "sandbox: {method: none}\nhardening: {" + key + "}\n"),
                               "sandbox.method none (p.yaml:3:19) filters no system calls"),
                      key);
        for (const std::string method : {"systemd", "bwrap", "podman"})
            CHECK_MESSAGE(problems_of(head + "sandbox: {method: " + method + "}\nhardening: {" + key + "}\n").empty(), key);
    }
}

TEST_CASE("the page has every call, group and kind of sockets that a policy may name")
{
    std::ifstream file(std::string(PI_AGENT_EXAMPLES) + "/../docs/reference/session-calls.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    const auto has_name = [&](const std::string &name) { return contains(page, "`" + name + "`"); };
    for (const auto &call : deniable_calls) {
        CHECK_MESSAGE(has_name(call.name), call.name);
        if (*call.group != '\0') CHECK_MESSAGE(has_name(call.group), call.group);
    }
    for (const auto &call : allowable_calls)
        CHECK_MESSAGE(has_name(call.name), call.name);
    for (const auto family : address_families)
        CHECK_MESSAGE(has_name(std::string(family)), family);
}

} // namespace session_calls_test
