// The key `devices` of a policy: what may be named, and with which method.
#include "common/policy/policy_paths.hpp"

#include "support/policy_text.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_devices_test {

namespace {

const std::string head = "version: 1\nusers: {alice: {roots: [~/projects]}}\n";

} // namespace

TEST_CASE("GPUs, KVM and serial lines may be named, and nothing by default")
{
    CHECK(parse(head).devices.empty());
    const auto devices = parse(head + "devices: [/dev/dri, /dev/kvm, nvidia, /dev/ttyUSB0, /dev/snd, /dev/net/tun]\n").devices;
    REQUIRE(devices.size() == 6);
    CHECK(devices[2].path == nvidia_devices);
}

TEST_CASE("what opens the host, or is each session's own, is refused by name")
{
    for (const auto *path : {"/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/sg0", "/dev/nvme0", "/dev/mapper/root", "/dev/loop0", "/dev/fuse",
                             "/dev/input/event0", "/dev/uinput", "/dev/tty1", "/dev/vcs1", "/dev/cpu/0/msr", "/dev/bus/usb", "/dev/vfio/1"})
        CHECK_MESSAGE(contains(problem_of_device(path).value().text, "opens the host itself"), path);
    for (const auto *path : {"/dev/null", "/dev/tty", "/dev/pts/3", "/dev/shm", "/dev/shm/x"})
        CHECK_MESSAGE(contains(problem_of_device(path).value().text, "each session's own"), path);
    for (const auto *path : {"/dev", "/srv/node", "dri", "/dev/", "/dev/../etc", "/dev//kvm", "/dev/a b", "/dev/a:b"})
        CHECK_MESSAGE(problem_of_device(path), path);
}

TEST_CASE("a method that makes no unit of its own for the agent's devices refuses the key")
{
    const std::string text = head + "devices: [/dev/kvm]\n";
    CHECK(problems_of(text).empty());
    for (const auto *method : {"bwrap", "podman", "none"})
        CHECK_MESSAGE(contains(problems_of(text + "sandbox: {method: " + method + "}\n"), "cannot choose the devices of a session"),
                      method);
}

} // namespace policy_devices_test
