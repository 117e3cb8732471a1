// How a session ended, which limits it reached, and what the agent is told of its sandbox.
#include "runner/plan/sandbox_plan.hpp"

#include <csignal>

namespace pi_agent {

// --- The notes to the agent as text, and their file.

namespace {

constexpr std::size_t path_length = 80; // bytes of one name

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

std::string network_line(const NetworkPolicy &network)
{
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return "none, but a loopback of your own: servers that you start reach each other, and nobody else reaches them, not even the "
               "user's browser. Nothing can be downloaded.";
    case NetworkMode::loopback:
        return "the host's loopback alone (127.0.0.0/8, ::1). The user's browser on this host reaches a server of yours on 127.0.0.1; "
               "downloads work only through a proxy that listens there.";
    case NetworkMode::hosts:
        return (network.hosts.empty() ? "the model's provider, and no other host"
                                      : "these hosts alone, each with its port: " + few<HostRule>(network.hosts, 12, to_string)) +
               ". HTTPS, ssh and anything else with a name works there as usual; every other host is refused at once. If you need one, say "
               "its name and port: the user or the administrator can add it. `pi-agent-why HOST:PORT` says what decides, and "
               "/run/pi-agent/denials has what was denied. Servers that you start reach each other on 127.0.0.1, and nobody else reaches "
               "them, not even the user's browser.";
    case NetworkMode::listed:
        return "these addresses alone, in both directions: " + few<IpRange>(network.allowed, 8, to_string) +
               ". Name servers and 127.0.0.1 are reached only if they are among them.";
    }
    return "the host's, not restricted by the sandbox.";
}

std::string limits_line(const LimitsPolicy &limits)
{
    std::string line;
    for (const auto &row : limit_rows)
        if (row.note != nullptr && in_force(limits, row))
            line += (line.empty() ? "Limits of the session: " : ", ") + text_in_force(limits, row) + " " + row.note;
    return line + ". A process that takes too much memory is killed (status 137): use fewer parallel jobs then.";
}

} // namespace

std::string box_notes(const BoxFacts &facts)
{
    const Policy &policy = facts.policy;
    const bool owned_by_user = policy.projects.ownership == ProjectOwnership::idmap;
    const std::vector<std::string> refused_calls = denied_calls_of(policy.calls);
    std::string notes = "# The sandbox you work in (pi-agent)\n\n";
    const auto add = [&notes](const std::string &line, bool applies = true) {
        if (applies) notes += "- " + line + "\n";
    };
    // One word covers the paths from which git runs programs: they are most of the list.
    std::vector<std::string> others = facts.read_only;
    const auto is_git = [](const std::string &path) { return path.find(".git/") != std::string::npos; };
    const bool has_git = std::erase_if(others, is_git) > 0;
    const std::string project = "the project `" + escape_for_display(facts.project) + "`";
    const char *const owner = owned_by_user ? " Files that you make in the project belong to the user."
                                            : " Files that you make in the project belong to this account, and the user can change "
                                              "them only as far as their modes allow.";
    const char *const access = owned_by_user ? "" : " The user's files are open to you as far as theirs allow.";
    add("You are the account `" + facts.account + "`." + (policy.projects.read_only ? "" : owner) + access);
    add("You can read " + project + " and change nothing in it: write results to your home, or say them.", policy.projects.read_only);
    add("You can write to " + (policy.projects.read_only ? "" : project + ", to ") + "your home `" + facts.home +
        "` (kept) and to /tmp and /var/tmp (yours alone, " +
        (policy.scratch == ScratchKind::tmpfs ? std::string("in memory, at most ") + scratch_memory_share + " of the host's, " : "") +
        "gone when the session ends).");
    add(std::string("Everything else is read-only or hidden: most of /etc, other homes") +
        (facts.confined ? ", other users' processes, the host's services" : "") +
        ". What you miss may still be on the host. After `Permission denied`, `Read-only file system` or `No such file or directory` that "
        "you did not expect, `pi-agent-why PATH` says what keeps you from it, and your user reads the rule with `pi-agentctl why PATH`: do "
        "not try other ways.");
    add("There is no sandbox around your processes: nothing but the rights of your account keeps them from those of others and from "
        "devices.",
        !facts.confined);
    add("Hidden in the project, though they look empty: " + names_of(facts.hidden) + " (other file systems).", !facts.hidden.empty());
    add("Read-only in the repository, because git runs things from there for the user: `.git/config`, `.git/hooks` and similar, of "
        "submodules and worktrees too. So `git config`, `git remote add`, tracking (`git push -u`), `git submodule add` and `update`, and "
        "`git worktree remove` of "
        "one that the user made fail or only warn; commit, branch, merge, rebase, stash, fetch and `git worktree add` work, and in a "
        "submodule "
        "`git fetch` and `git checkout COMMIT`. Ask the user to do the others outside. `git "
        "count-objects` calls these garbage; they are not.",
        has_git);
    add("Read-only in the project: " + names_of(others) + ".", !others.empty());
    add("Access control lists (a `+` in `ls -l`) that name other accounts or groups cannot be copied here. A copy that keeps permissions "
        "(options `-p`, `-a`) and `sed -i` say \"preserving permissions: Invalid argument\" and leave those entries out; with the option "
        "`--no-preserve=mode` a copy leaves them out without an error. Ask the user to do it outside where the entries matter.",
        !facts.knows_ids);
    add("Some files of the project cannot be read (permission denied): the administrator keeps them from you.", facts.masked);
    add("Network: " + network_line(policy.network));
    add("`sudo` gives no rights: it runs the command as you. System packages cannot be installed.");
    add(std::string("These fail, and nothing that you do fixes it: set-id bits on files (`u+s`, `g+s`), other owners, groups that are not "
                    "the directory's, core files") +
            (is_allowed_call(policy.calls, "personality") ? " and `perf`." : ", `perf`, and `setarch -R`."),
        facts.confined);
    add("A process sets its own niceness, scheduling, affinity and limits, and nobody's by its number: `renice -p`, `taskset -p` and "
        "`prlimit "
        "--pid` fail, also for threads that pin themselves (OMP_PROC_BIND). Start the program with `nice`, `taskset` or `prlimit`.",
        facts.confined);
    add("The administrator refuses these system calls (EPERM): " + names_of(refused_calls) + ".", !refused_calls.empty());
    add("There is no bus: `systemctl` and `journalctl` fail. Start servers as plain processes; they end with the session.", facts.confined);
    add("Commits are not signed, unless the administrator gave you a key: no passphrase or key of the user's is here.", facts.confined);
    add("The user's dotfiles and most variables of the user's shell are not here, and of the user's git settings nothing that starts a "
        "program.");
    add(std::string("pip, npm -g, cargo install and go install put programs into ~/.local, which is kept") +
        (facts.caches.empty() ? ", as are their caches" : "") + ".");
    add("Toolchains of the user's, read-only: " + names_of(facts.toolchains) + ".", !facts.toolchains.empty());
    add("Caches that begin as the user's, so that what is in them need not be downloaded, and whose changes are gone when the session "
        "ends: " +
            names_of(facts.caches) + ".",
        !facts.caches.empty());
    add("chromium, and what drives it (puppeteer, playwright, selenium), start with `--no-sandbox` alone: the sandbox around you is "
        "theirs, too. Nothing else that makes namespaces works (`unshare`, `bwrap`, containers).",
        facts.confined);
    add("Debuggers (gdb, strace) and LeakSanitizer are refused by the administrator: `ASAN_OPTIONS=detect_leaks=0` leaves the latter out.",
        facts.confined && policy.tracing == Tracing::never);
    add("Files of the user's that are not here, such as a picture whose path they paste or drop, you cannot read: ask for a copy in the "
        "project, or a start with `pi @FILE`, which hands a copy over.");
    add("There is no display, ssh-agent or key of the user's, and nobody answers an editor: `git commit -m`, not `git commit`.");
    add(limits_line(policy.limits), facts.limited);
    add("The settings.json of the agent is locked by the administrator.", policy.settings_lock);
    return notes;
}

// --- Compares two reports of how the agent ended.

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

// Limits in a method's words, and the messages when a session reached one.

namespace {

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
