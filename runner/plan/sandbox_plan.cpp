// How a session ended, which limits it reached, and what the agent is told of its sandbox.
#include "runner/plan/sandbox_plan.hpp"

#include <csignal>
#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr std::size_t path_length = 80; // bytes of one name

// A line of the notes, or what continues one, and the facts that must all hold; '!' before one: it must not.
struct BoxNote {
    const char *text;
    std::string_view when = "";
};
constexpr BoxNote box_note_texts[] = {
#include "runner/box_notes.inc"
};

// Names a few of the items.
template <typename Item>
std::string few(const std::vector<Item> &items, std::size_t most, std::string (*show)(const Item &))
{
    std::string names;
    for (std::size_t index = 0; index < std::min(items.size(), most); ++index)
        names += (index == 0 ? "" : ", ") + show(items[index]);
    if (items.size() > most) names += " and " + std::to_string(items.size() - most) + " more";
    return names;
}

std::string names_of(const std::vector<std::string> &paths)
{
    return few<std::string>(paths, 3, [](const std::string &path) { return "`" + escape_for_display(path.substr(0, path_length)) + "`"; });
}

std::string limits_text(const LimitsPolicy &limits)
{
    std::string text;
    for (const auto &row : limit_rows)
        if (row.note != nullptr && in_force(limits, row)) text += (text.empty() ? "" : ", ") + text_in_force(limits, row) + " " + row.note;
    return text;
}

std::string said_or_default(const char *key, const std::optional<SaidLimit> &said, const std::string &otherwise)
{
    if (said) return said->text + " (limits." + key + ", " + to_string(said->where) + ")";
    return otherwise + " (the default; limits." + key + " in the policy sets another)";
}

std::string memory_notice(const LimitsPolicy &limits, const LimitEvents &events, bool agent_killed)
{
    const std::string whose = agent_killed         ? "the agent, or what it ran"
                              : events.killed == 1 ? "one of its processes, and the agent went on"
                                                   : std::to_string(events.killed) + " of its processes, and the agent went on";
    const std::string limit = said_or_default("memory", said_memory(limits),
                                              text_in_force(limits, limit_row(&LimitsPolicy::memory_share)) + " of the host's memory");
    if (events.own_memory)
        return "out of memory: the session reached its limit of " + limit + ", and the kernel killed " + whose +
               "; let it do less at once (fewer parallel jobs), or ask the administrator for more";
    return "out of memory: the host, or all your sessions together, had no more, and the kernel killed " + whose +
           "; the session itself was below its limit of " + limit + "; end other sessions, or let it do less at once";
}

} // namespace

std::string box_notes(const BoxFacts &facts)
{
    const Policy &policy = facts.policy;
    const NetworkMode network = policy.network.mode;
    const bool owned_by_user = policy.projects.ownership == ProjectOwnership::idmap;
    const std::vector<std::string> refused_calls = denied_calls_of(policy.calls);
    // One word covers the paths from which git runs programs: they are most of the list.
    std::vector<std::string> others = facts.read_only;
    const bool has_git = std::erase_if(others, [](const std::string &path) { return path.find(".git/") != std::string::npos; }) > 0;
    const std::map<std::string_view, bool> holds = {
        {"read_only", policy.projects.read_only},
        {"owned", owned_by_user},
        {"in_memory", policy.scratch == ScratchKind::tmpfs},
        {"confined", facts.confined},
        {"hidden", !facts.hidden.empty()},
        {"git", has_git},
        {"others", !others.empty()},
        {"few_ids", !facts.knows_ids},
        {"masked", facts.masked},
        {"full", network == NetworkMode::full},
        {"none", network == NetworkMode::none},
        {"loopback", network == NetworkMode::loopback},
        {"listed", network == NetworkMode::listed},
        {"hosts", network == NetworkMode::hosts},
        {"named", !policy.network.hosts.empty()},
        {"refused_calls", !refused_calls.empty()},
        {"toolchains", !facts.toolchains.empty()},
        {"caches", !facts.caches.empty()},
        {"never_traced", policy.tracing == Tracing::never},
        {"limited", facts.limited},
        {"locked", policy.settings_lock},
    };
    std::string notes = "# The sandbox you work in (pi-agent)\n";
    for (const auto &[text, when] : box_note_texts) {
        const auto words = split(when, ' ');
        const auto is_true = [&](std::string_view word) {
            return word.empty() || (word[0] == '!' ? !holds.at(word.substr(1)) : holds.at(word));
        };
        if (!std::all_of(words.begin(), words.end(), is_true)) continue;
        if (std::string_view(text).starts_with("- ")) notes += '\n';
        notes += fmt::format(fmt::runtime(text), fmt::arg("account", facts.account), fmt::arg("home", facts.home),
                             fmt::arg("project", escape_for_display(facts.project)), fmt::arg("memory", scratch_memory_share),
                             fmt::arg("hidden", names_of(facts.hidden)), fmt::arg("others", names_of(others)),
                             fmt::arg("refused_calls", names_of(refused_calls)), fmt::arg("toolchains", names_of(facts.toolchains)),
                             fmt::arg("caches", names_of(facts.caches)), fmt::arg("limits", limits_text(policy.limits)),
                             fmt::arg("hosts", few<HostRule>(policy.network.hosts, 12, to_string)),
                             fmt::arg("ranges", few<IpRange>(policy.network.allowed, 8, to_string)));
    }
    return notes + '\n';
}

AgentEnded agent_end(const SandboxResult &seen, const std::optional<ExecEnded> &said, bool killed)
{
    const bool is_signal = said && said->by_signal && said->value > 0 && said->value < NSIG;
    // systemd has forgotten the process, or never saw it end (seen on 257). The unit is over, so a launcher gains nothing by lying about
    // how.
    if (seen.code == 0) {
        // Nor does it see the end of a unit that it kills itself, all at once, on a stop or a time limit (seen on 257): the signal is
        // KillSignal=.
        if (!said && (killed || seen.result == "timeout" || seen.result == "oom-kill")) return AgentEnded{true, SIGKILL};
        if (!said)
            throw Failure(ExitStatus::system_failure,
                          "nobody can say how the session ended: neither its unit nor the process inside reported it");
        return is_signal ? AgentEnded{true, said->value} : AgentEnded{false, said->value & 0xFF};
    }
    if (seen.code != CLD_EXITED) return AgentEnded{true, seen.status};
    return is_signal && seen.status == 128 + said->value ? AgentEnded{true, said->value} : AgentEnded{false, seen.status};
}

SandboxResult without_own_kill(SandboxResult seen)
{
    if (seen.code != CLD_EXITED) seen.code = 0;
    return seen;
}

std::vector<std::string> limit_notices(const LimitsPolicy &limits, const LimitEvents &events, const AgentEnded &ended,
                                       const std::string &result, Clock::duration lasted)
{
    std::vector<std::string> notices;
    const bool killed = ended.by_signal && ended.value == SIGKILL;
    // systemd reports the same for a unit that is slow to stop.
    if (limits.runtime && result == "timeout" && lasted >= std::chrono::seconds(limits.runtime->amount))
        notices.push_back("out of time: a session may last " + said_or_default("runtime", limits.runtime, "") +
                          ", and this one was ended; start pi again to go on, or ask the administrator for more");
    if (events.killed > 0 || result == "oom-kill") notices.push_back(memory_notice(limits, events, killed));
    if (events.refused_tasks > 0) {
        notices.push_back("out of processes: the session reached its limit of " +
                          said_or_default("tasks", limits.tasks, std::to_string(in_force(limits, &LimitsPolicy::tasks))) +
                          ", or all your sessions together theirs, and " +
                          (events.refused_tasks == 1 ? "one start of a process or thread"
                                                     : std::to_string(events.refused_tasks) + " starts of processes or threads") +
                          " failed inside (EAGAIN); let it do less at once, or ask the administrator for more");
    }
    return notices;
}

SystemdFeatures systemd_features(const std::string &version)
{
    unsigned number = 0;
    const auto parsed = std::from_chars(version.data(), version.data() + version.size(), number);
    if (parsed.ec != std::errc())
        throw Failure(FailureKind::sandbox_method, "systemd reports the version " + escape_for_display(version) +
                                                       ", which does not begin with a number; compare it with: systemctl --version");
    if (number < oldest_systemd)
        throw Failure(FailureKind::sandbox_method, "this host runs systemd " + std::to_string(number) +
                                                       ", and sandbox.method systemd needs " + std::to_string(oldest_systemd) +
                                                       " or newer; ask the administrator to upgrade this host or to choose another method");
    return {number, number >= systemd_with_private_pids, number >= systemd_with_log_sockets, number >= systemd_with_identity_ids};
}

} // namespace pi_agent
