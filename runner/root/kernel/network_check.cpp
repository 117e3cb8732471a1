// The kernel's own account of a unit's network; the one home of bpf(2).
#include "runner/root/kernel/network_check.hpp"

#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/host/process_namespace.hpp"
#include "common/seams/defence.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

[[noreturn]] void refuse(const NetworkPolicy &network, const std::string &reason, const std::string &remedy)
{
    throw Failure(ExitStatus::unavailable, "this host cannot enforce the policy's network (" + to_string(network.where) + "): " + reason +
                                               "; " + remedy + ", or change the policy");
}

// How many programs are attached to the group itself: what systemd attaches for it stands nowhere else.
std::uint32_t count_filters(FdRef group, bpf_attach_type direction, const NetworkPolicy &network)
{
    bpf_attr attribute{};
    attribute.query.target_fd = static_cast<std::uint32_t>(group.get());
    attribute.query.attach_type = direction;
    if (syscall(SYS_bpf, BPF_PROG_QUERY, &attribute, sizeof attribute) != 0)
        refuse(network, SystemFailure(errno, "asking the kernel for packet filters").what(),
               "it needs a kernel with CONFIG_CGROUP_BPF, and the right to ask it");
    return attribute.query.prog_cnt;
}

} // namespace

void require_own_network(const std::vector<pid_t> &processes, const NetworkPolicy &network)
{
    if (!defence_is_on("network-check")) return;
    const auto host = namespace_of("1", "net");
    if (!host) throw_errno("reading the host's network namespace");
    int seen = 0;
    for (const pid_t pid : processes) {
        const auto own = namespace_of(std::to_string(pid), "net");
        if (!own) continue; // it has ended
        if (own == host)
            refuse(network, "no network namespace was made for the session",
                   "the kernel needs CONFIG_NET_NS, and what builds the sandbox the right to use it");
        ++seen;
    }
    if (seen == 0) throw Failure(ExitStatus::unavailable, "the session ended before its network could be looked at");
}

void require_packet_filters(const AsRoot & /*root*/, const ControlGroup &group, const NetworkPolicy &network)
{
    if (!defence_is_on("network-check")) return;
    if (!group.is_unified)
        refuse(network, "its control groups are those of version 1, which have no packet filters",
               "start it with systemd.unified_cgroup_hierarchy=1");
    const UniqueFd fd = UniqueFd::adopt(open(group.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) throw_errno("opening the session's control group");
    for (const auto direction : {BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS})
        if (count_filters(fd, direction, network) == 0)
            refuse(network, "systemd attached no packet filter to the session",
                   "the kernel needs CONFIG_CGROUP_BPF, and systemd the right to use it");
}

} // namespace pi_agent
