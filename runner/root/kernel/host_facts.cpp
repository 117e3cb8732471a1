// What the kernel says of this machine, holds a session to and counts for it.
#include "runner/root/kernel/host_facts.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

#include <fmt/ranges.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/syscall.h>

#include <filesystem>
#include <sstream>

namespace pi_agent {

// --- Facts about this machine: accounts of processes, processors, programs, and Slurm among the ancestors.

namespace {

// A user may give a set-uid program any name, where the kernel lets them link to it, and then root runs under that name in a directory of
// theirs. So the name counts only where none but root gives names.
bool is_slurms(const Ancestor &ancestor)
{
    if (!ancestor.is_roots) return false;
    const std::string program = read_link(ancestor.directory, "exe");
    if (!program.substr(program.rfind('/') + 1).starts_with(job_process)) return false;
    try {
        const UniqueFd trusted = open_trusted(program, O_PATH, "Slurm's program for a job");
        struct stat runs {};
        return fstatat(ancestor.directory.get(), "exe", &runs, 0) == 0 &&
               is_same_file(runs, examine(trusted, "examining Slurm's program for a job"));
    } catch (const Failure &) { // others can change it, or it is gone: it proves nothing
        return false;
    }
}

// The words of the one line with this name; none where there is no such line, or more than one.
std::optional<std::vector<std::string>> words_of(const std::string &status, const std::string &name)
{
    std::optional<std::vector<std::string>> found;
    std::istringstream lines(status);
    for (std::string line; std::getline(lines, line);) {
        if (line.compare(0, name.size() + 1, name + ":") != 0) continue;
        if (found) return std::nullopt;
        std::istringstream words(line.substr(name.size() + 1));
        found.emplace(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    }
    return found;
}

// At least `count` words, each of them one of `allowed`.
bool are_among(const std::optional<std::vector<std::string>> &words, std::size_t count, const std::vector<std::uint64_t> &allowed, int base)
{
    return words && words->size() >= count && std::all_of(words->begin(), words->end(), [&](const std::string &word) {
               const auto number = to_number<std::uint64_t>(word, base);
               return number && std::find(allowed.begin(), allowed.end(), *number) != allowed.end();
           });
}

// --- What the kernel holds a session to and counts for it: network, controllers, limits, usage.

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
    return quota && period && *period != 0 ? std::optional((*quota * 100 + *period - 1) / *period) : std::nullopt;
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

UniqueFd find_job(const AsRoot & /*root*/)
{
    UniqueFd job;
    const bool is_there = has_ancestor([&](const Ancestor &ancestor) {
        job = open_process(ancestor.number);
        return job && is_slurms(ancestor); // asked of its directory, so it lived, and the number was its own, when `job` was opened
    });
    return is_there ? std::move(job) : UniqueFd();
}

ExpectedAccount account_of(const SandboxPlan &plan)
{
    ExpectedAccount expected{plan.agent, plan.agent_group, plan.account_groups};
    for (const Gid group : plan.groups)
        expected.groups.push_back(group.value());
    return expected;
}

std::optional<std::string> account_problem(const std::string &status, const ExpectedAccount &expected)
{
    constexpr std::size_t kinds = 4; // real, effective, saved, of the file system
    const std::vector<std::string> unknown = {"?"};
    std::vector<std::uint64_t> groups(expected.groups.begin(), expected.groups.end());
    groups.push_back(expected.group.value());
    const auto wrong = [&](const char *name) {
        return fmt::format("{}: {}", name, escape_for_display(fmt::to_string(fmt::join(words_of(status, name).value_or(unknown), " "))));
    };
    if (!are_among(words_of(status, "Uid"), kinds, {expected.user.value()}, 10)) return wrong("Uid");
    if (!are_among(words_of(status, "Gid"), kinds, {expected.group.value()}, 10)) return wrong("Gid");
    if (!are_among(words_of(status, "Groups"), 0, groups, 10)) return wrong("Groups");
    if (expected.no_new_privileges && !are_among(words_of(status, "NoNewPrivs"), 1, {1}, 10)) return wrong("NoNewPrivs");
    if (!expected.no_capabilities) return std::nullopt;
    for (const char *set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
        if (!are_among(words_of(status, set), 1, {0}, 16)) return wrong(set);
    return std::nullopt;
}

std::vector<cpu_set_t> processors_of(pid_t process, const AskForProcessors &ask)
{
    constexpr std::size_t most = 256; // sets, for 262,144 processors: thirty times what Linux can be built for
    for (std::size_t count = 1; count <= most; count *= 2) {
        std::vector<cpu_set_t> sets(count);
        if (ask(process, count * sizeof(cpu_set_t), sets.data()) == 0) return sets;
        if (errno != EINVAL) break;
    }
    throw_errno("reading the processors of process " + std::to_string(process));
}

bool has_name(const std::vector<std::string> &directories, const std::string &name)
{
    return std::any_of(directories.begin(), directories.end(), [&](const std::string &directory) {
        struct stat facts {};
        return lstat((directory + "/" + name).c_str(), &facts) == 0;
    });
}

std::string host_name()
{
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_errno("asking for the host's name");
    return name.data();
}

std::vector<std::string> missing_search_tools(const std::vector<std::string> &directories)
{
    const auto is_there = [&](const char *name) {
        return std::any_of(directories.begin(), directories.end(),
                           [&](const std::string &directory) { return access((directory + "/" + name).c_str(), X_OK) == 0; });
    };
    std::vector<std::string> missing;
    if (!is_there("fd") && !is_there("fdfind")) missing.emplace_back("fd");
    if (!is_there("rg")) missing.emplace_back("rg");
    return missing;
}

bool can_be_run_by_all(const std::string &path)
{
    std::error_code problem;
    const std::filesystem::path real = std::filesystem::canonical(path, problem);
    struct stat facts {};
    if (problem || stat(real.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & S_IXOTH) == 0) return false;
    for (auto directory = real.parent_path(); directory.has_relative_path(); directory = directory.parent_path())
        if (stat(directory.c_str(), &facts) == 0 && (facts.st_mode & S_IXOTH) == 0) return false;
    return true;
}

std::optional<std::string> open_program_notice(const Policy &policy)
{
    if (!policy.wrapper.hide_direct_binary || !can_be_run_by_all(policy.agent.binary)) return std::nullopt;
    return "everybody on this host can run " + policy.agent.binary +
           " without this wrapper: was it upgraded? the administrator hides it again with: sudo pi-agentctl apply";
}

std::optional<bool> have_own_namespace(const std::vector<pid_t> &processes, const std::string &kind)
{
    const auto host = namespace_of("1", kind);
    if (!host) throw_errno("reading the host's namespaces");
    std::optional<bool> all;
    for (const pid_t pid : processes) {
        const auto own = namespace_of(std::to_string(pid), kind);
        if (!own) require_gone("reading the session's namespaces", ESRCH);
        if (own) all = all.value_or(true) && own != host;
    }
    return all;
}

void require_own_network(const std::vector<pid_t> &processes, const NetworkPolicy &network)
{
    if (!defence_is_on("network-check")) return;
    const auto has_own = have_own_namespace(processes, "net");
    if (!has_own) throw Failure(ExitStatus::unavailable, "the session ended before its network could be checked");
    if (!*has_own)
        refuse(network, "no network namespace was made for the session",
               "the kernel needs CONFIG_NET_NS, and what builds the sandbox the right to use it");
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
    if (const auto times = counters_in(group.path + "/cpu.stat"); times.contains("usage_usec")) usage.cpu_usec = times.at("usage_usec");
    return usage;
}

} // namespace pi_agent
