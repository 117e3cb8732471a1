// What the kernel holds a session to and counts for it: network, controllers, limits, usage.
#include "runner/root/kernel/enforcement.hpp"

#include "common/policy/policy_sections.hpp"
#include "common/seams/seams.hpp"

#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/syscall.h>

namespace pi_agent {

namespace {

[[noreturn]] void refuse(const NetworkPolicy &network, const std::string &reason, const std::string &remedy)
{
    throw Failure(FailureKind::network_not_enforced,
                  "this host cannot enforce " + name_of(network) + ": " + reason + "; " + remedy + ", or " + way_without(network));
}

// How many programs are attached to the group itself: systemd attaches them for it there and nowhere else.
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

void require_unified(bool is_unified, const NetworkPolicy &network)
{
    if (is_unified) return;
    refuse(network, "it has control groups of version 1, which have no packet filters", "start it with systemd.unified_cgroup_hierarchy=1");
}

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
        return share_of_cpu(number_in(words_in(directory + "/cpu.cfs_quota_us")), number_in(words_in(directory + "/cpu.cfs_period_us")));
    const std::vector<std::string> words = words_in(directory + "/cpu.max");
    return share_of_cpu(number_in(words), number_in(words, 1));
}

std::string reason_for(const std::string &controller, const HostControllers &host)
{
    const std::string lack =
        host.is_unified ? "this host's control groups (version 2, /sys/fs/cgroup/cgroup.controllers) have no controller " + controller
                        : "no control groups of version 1 with the controller " + controller + " are mounted in /sys/fs/cgroup";
    const std::string words = controller == "memory" ? "without cgroup_disable=memory, on some boards with cgroup_enable=memory"
                                                     : "without cgroup_disable=" + controller;
    return lack + "; start its kernel with it (" + words + "), or, in a container, have it delegated";
}

std::optional<IdleLimit> first_said(const std::vector<IdleLimit> &limits)
{
    const auto found = std::find_if(limits.begin(), limits.end(), [](const IdleLimit &limit) { return limit.said.has_value(); });
    return found == limits.end() ? std::nullopt : std::optional(*found);
}

// "oom_kill 2", one a line.
std::map<std::string, std::uint64_t> counters_in(const std::string &path)
{
    const std::vector<std::string> words = words_in(path);
    std::map<std::string, std::uint64_t> counters;
    for (std::size_t index = 0; index + 1 < words.size(); index += 2)
        if (const auto count = number_in(words, index + 1)) counters[words[index]] = *count;
    return counters;
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
    if (seen == 0) throw Failure(ExitStatus::unavailable, "the session ended before its network could be checked");
}

void require_packet_filters(const AsRoot & /*root*/, const ControlGroup &group, const NetworkPolicy &network)
{
    if (!defence_is_on("network-check")) return;
    require_unified(group.is_unified, network);
    const UniqueFd fd = open_or_throw("opening the session's control group", group.path, O_RDONLY | O_DIRECTORY);
    for (const auto direction : {BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS})
        if (count_filters(fd, direction, network) == 0)
            refuse(network, "systemd attached no packet filter to the session",
                   "the kernel needs CONFIG_CGROUP_BPF, and systemd the right to use it");
}

void require_enforceable(const AsRoot & /*root*/, const NetworkPolicy &network, bool has_unit)
{
    if (has_own_network(network.mode) && !namespace_of("1", "net"))
        refuse(network, "its kernel makes no network namespaces", "it needs a kernel with CONFIG_NET_NS");
    if (network.mode == NetworkMode::full || has_own_network(network.mode) || !has_unit) return;
    require_unified(host_controllers().is_unified, network);
    const UniqueFd groups = open_or_throw("opening the control groups", control_groups, O_RDONLY | O_DIRECTORY);
    for (const auto direction : {BPF_CGROUP_INET_INGRESS, BPF_CGROUP_INET_EGRESS})
        count_filters(groups, direction, network);
}

void require_limits_in(const ControlGroup &group, const LimitsPolicy &limits, const char *cause)
{
    const auto require_at_most = [&](const char *key, const SaidLimit &said, const char *controller, std::optional<std::uint64_t> held,
                                     std::uint64_t allowed) {
        if (held && *held <= allowed) return;
        throw Failure(FailureKind::limits_not_enforced, std::string("this host does not enforce the policy's ") + key + ": " + said.text +
                                                            " (" + to_string(said.where) +
                                                            "): the session's control group lacks it; the controller " + controller + ": " +
                                                            cause + " or remove the key from the policy");
    };
    if (const auto &said = said_memory(limits)) {
        const std::string memory = directory_of(group, "memory");
        // The kernel rounds to pages, and systemd rounds a share to its own count of the host's memory.
        const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
        const std::uint64_t allowed = (limits.memory ? said->amount : host_memory() / 100 * said->amount + 100) + page;
        require_at_most("limits.memory", *said, "memory",
                        number_in(words_in(memory + (group.is_unified ? "/memory.max" : "/memory.limit_in_bytes"))), allowed);
        // A kernel that does not account for swap has no such file; version 1 has no limit of swap alone (docs/concepts/limits.md).
        const std::vector<std::string> swap = words_in(memory + "/memory.swap.max");
        if (!swap.empty()) require_at_most("limits.memory", *said, "memory", number_in(swap), 0);
    }
    for (const auto &row : limit_rows) {
        const std::string controller = row.controller == nullptr ? "" : row.controller;
        const auto &said = limits.*row.said;
        if (!said || (controller != "pids" && controller != "cpu")) continue;
        const auto held = controller == "cpu" ? cpu_in(group) : number_in(words_in(directory_of(group, "pids") + "/pids.max"));
        require_at_most(row.key, *said, row.controller, held, said->amount);
    }
}

HostControllers host_controllers()
{
    HostControllers host{is_mounted_as(control_groups, CGROUP2_SUPER_MAGIC), {}};
    if (host.is_unified) {
        const std::vector<std::string> names = words_in(std::string(control_groups) + "/cgroup.controllers");
        host.names.insert(names.begin(), names.end());
        return host;
    }
    for (const char *name : {"memory", "pids", "cpu"})
        if (is_mounted_as(std::string(control_groups) + "/" + name, CGROUP_SUPER_MAGIC)) host.names.insert(name);
    return host;
}

std::string to_string(const IdleLimit &limit)
{
    return limit.said ? limit.key + ": " + limit.said->text + " (" + to_string(limit.said->where) + ")" : limit.key + " (default)";
}

std::vector<IdleLimit> idle_limits(const LimitsPolicy &limits, const HostControllers &host)
{
    std::vector<IdleLimit> idle;
    for (const auto &row : limit_rows) {
        if (row.controller == nullptr || host.names.contains(row.controller)) continue;
        const auto &said = said_for_key(limits, row);
        if (said || !default_text(row).empty()) idle.push_back({row.key, said, reason_for(row.controller, host)});
    }
    return idle;
}

std::optional<IdleLimit> first_for_group(const LimitsPolicy &limits)
{
    return first_said(idle_limits(limits, {}));
}

std::string problem_of_share(const LimitsPolicy &limits, std::uint64_t host_memory)
{
    if (!limits.memory_share) return "";
    const std::uint64_t bytes = host_memory / 100 * limits.memory_share->amount;
    if (bytes >= least_memory) return "";
    return limits.memory_share->text + " of this host's memory are " + std::to_string(bytes >> 20U) + "M, and the agent needs at least " +
           std::to_string(least_memory >> 20U) + "M; say more, or an amount";
}

std::uint64_t host_memory()
{
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

void require_limit_controllers(const AsRoot & /*root*/, const LimitsPolicy &limits)
{
    const std::string share = problem_of_share(limits, host_memory());
    if (!share.empty()) throw Failure(ExitStatus::configuration, to_string(limits.memory_share->where) + ": limits.memory: " + share);
    const auto said = first_said(idle_limits(limits, host_controllers()));
    if (!said || !defence_is_on("limit-controllers")) return;
    throw Failure(FailureKind::limits_not_enforced, "this host cannot enforce the policy's " + to_string(*said) + ": " + said->reason +
                                                        "; or remove the key from the policy");
}

LimitEvents read_limit_events(const ControlGroup &group)
{
    const std::string memory = directory_of(group, "memory");
    LimitEvents events;
    if (group.is_unified) {
        auto counters = counters_in(memory + "/memory.events");
        events.killed = counters["oom_kill"];
        events.own_memory = counters["oom"] > 0;
    } else {
        for (const auto &one : groups_below(memory)) // each counts its own
            events.killed += counters_in(one + "/memory.oom_control")["oom_kill"];
        events.own_memory = number_in(words_in(memory + "/memory.failcnt")).value_or(0) > 0;
    }
    // The kernel counts in the group that was refused, and since Linux 6.11 also in the group that has the limit.
    for (const auto &one : groups_below(directory_of(group, "pids")))
        events.refused_tasks = std::max(events.refused_tasks, counters_in(one + "/pids.events")["max"]);
    return events;
}

UnitUsage usage_of(const ControlGroup &group)
{
    UnitUsage usage;
    if (!group.is_unified) return usage;
    usage.memory_peak = number_in(words_in(group.path + "/memory.peak"));
    const auto times = counters_in(group.path + "/cpu.stat");
    if (times.contains("usage_usec")) usage.cpu_usec = times.at("usage_usec");
    return usage;
}

} // namespace pi_agent
