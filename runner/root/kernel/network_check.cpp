// Whether the kernel holds a session to its network and its limits.
#include "runner/root/kernel/network_check.hpp"

#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/base/text.hpp"
#include "common/host/namespaces.hpp"
#include "common/policy/policy_sections.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/kernel/limit_controllers.hpp"

#include <fcntl.h>
#include <fstream>
#include <linux/bpf.h>
#include <sstream>
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
    const UniqueFd fd = open_or_throw("opening the session's control group", group.path, O_RDONLY | O_DIRECTORY);
    for (const auto direction : {BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS})
        if (count_filters(fd, direction, network) == 0)
            refuse(network, "systemd attached no packet filter to the session",
                   "the kernel needs CONFIG_CGROUP_BPF, and systemd the right to use it");
}

namespace {

// The first words of a file of a control group; empty when it is not there.
std::vector<std::string> words_in(const std::string &path)
{
    std::ifstream file(path);
    std::vector<std::string> words;
    for (std::string word; file >> word;)
        words.push_back(word);
    return words;
}

// "max" and -1 are no limit, and neither is what cannot be read.
std::optional<std::uint64_t> number(const std::vector<std::string> &words, std::size_t index)
{
    return index < words.size() ? to_number<std::uint64_t>(words[index]) : std::nullopt;
}

// What is in force in a group, held against the policy.
class Check {
public:
    explicit Check(const char *cause) : cause_(cause) {}
    void require_at_most(const char *key, const SaidLimit &said, const std::string &controller, std::optional<std::uint64_t> in_force,
                         std::uint64_t allowed) const
    {
        if (in_force && *in_force <= allowed) return;
        throw Failure(ExitStatus::unavailable, std::string("this host does not enforce the policy's limits.") + key + ": " + said.text +
                                                   " (" + to_string(said.where) +
                                                   "): the session's control group is without it; the controller " + controller + ": " +
                                                   cause_ + " or leave the key out of the policy");
    }

private:
    const char *cause_;
};

// Percent of one processor, rounded up.
std::optional<std::uint64_t> share_of_cpu(std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period)
{
    if (!quota || !period || *period == 0) return std::nullopt;
    return (*quota * 100 + *period - 1) / *period;
}

std::optional<std::uint64_t> cpu_in(const ControlGroup &group)
{
    const std::string directory = directory_of(group, "cpu");
    if (!group.is_unified)
        return share_of_cpu(number(words_in(directory + "/cpu.cfs_quota_us"), 0), number(words_in(directory + "/cpu.cfs_period_us"), 0));
    const std::vector<std::string> words = words_in(directory + "/cpu.max");
    return share_of_cpu(number(words, 0), number(words, 1));
}

} // namespace

void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause)
{
    const Check check(cause);
    if (const auto &said = said_memory(limits)) {
        const std::string file = group.is_unified ? "/memory.max" : "/memory.limit_in_bytes";
        // The kernel rounds to pages, systemd a share to its own count of the host's memory.
        const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
        const std::uint64_t allowed = (limits.memory ? said->amount : host_memory() / 100 * said->amount + 100) + page;
        check.require_at_most("memory", *said, "memory", number(words_in(directory_of(group, "memory") + file), 0), allowed);
        // A kernel without accounts of swap has no such file; version 1 has no limit of swap alone (docs/limits.md).
        const std::vector<std::string> swap = words_in(directory_of(group, "memory") + "/memory.swap.max");
        if (!swap.empty()) check.require_at_most("memory", *said, "memory", number(swap, 0), 0);
    }
    if (limits.tasks)
        check.require_at_most("tasks", *limits.tasks, "pids", number(words_in(directory_of(group, "pids") + "/pids.max"), 0),
                              limits.tasks->amount);
    if (limits.cpu) check.require_at_most("cpu", *limits.cpu, "cpu", cpu_in(group), limits.cpu->amount);
}

} // namespace pi_agent
