// What bubblewrap needs of a host.
#include "runner/root/method/bwrap_preflight.hpp"

#include "common/base/error.hpp"
#include "runner/root/method/method_program.hpp"
#include "runner/root/mount/mount_calls.hpp"

#include <array>
#include <cstdint>
#include <linux/capability.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace pi_agent {

namespace {

// To build the view out of mounts, to make what is the agent's, and to become its account without any.
constexpr std::array<std::pair<int, std::string_view>, 8> needed = {{{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                                                     {CAP_CHOWN, "CAP_CHOWN"},
                                                                     {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                                     {CAP_FOWNER, "CAP_FOWNER"},
                                                                     {CAP_KILL, "CAP_KILL"},
                                                                     {CAP_SETGID, "CAP_SETGID"},
                                                                     {CAP_SETUID, "CAP_SETUID"},
                                                                     {CAP_SETPCAP, "CAP_SETPCAP"}}};

std::uint32_t own_capabilities()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading the own capabilities");
    return data[0].effective; // those that are asked for here are all among the first 32
}

bool has(std::uint32_t capabilities, int capability)
{
    return (capabilities & (1U << static_cast<unsigned>(capability))) != 0;
}

template <typename Names>
std::string joined(const Names &names)
{
    std::string text;
    for (const auto &name : names)
        text.append(text.empty() ? "" : ", ").append(name);
    return text;
}

void require_capabilities()
{
    std::vector<std::string_view> missing;
    const std::uint32_t own = own_capabilities();
    for (const auto &[capability, name] : needed)
        if (!has(own, capability)) missing.push_back(name);
    if (missing.empty()) return;
    throw Failure(ExitStatus::unavailable,
                  "root of this container may not mount, or not become the agent (it has no " + joined(missing) +
                      "), and sandbox.method bwrap builds the agent's view out of mounts; start the container with that, or choose "
                      "another method");
}

void require_calls(const AsRoot &root)
{
    const std::vector<std::string> refused = refused_mount_calls(root);
    if (refused.empty()) return;
    throw Failure(ExitStatus::unavailable,
                  "a system-call filter around this container refuses " + joined(refused) +
                      ", and sandbox.method bwrap builds the agent's view with it; start the container with a "
                      "seccomp profile that allows it (docs/methods.md, \"In a container\"), or choose another method");
}

} // namespace

void require_bwrap(const AsRoot &root)
{
    require_method_programs(SandboxMethod::bwrap);
    require_capabilities();
    require_calls(root);
}

void require_bwrap_network(const AsRoot & /*root*/, const NetworkPolicy &network)
{
    if (network.mode != NetworkMode::none || has(own_capabilities(), CAP_NET_ADMIN)) return;
    throw Failure(ExitStatus::unavailable,
                  "root of this container has no CAP_NET_ADMIN, and sandbox.method bwrap needs it for the policy's "
                  "network: none (" +
                      to_string(network.where) +
                      "), to give the session a loopback of its own; start the container with that capability, "
                      "or change the policy");
}

} // namespace pi_agent
