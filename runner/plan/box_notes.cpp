// The notes to the agent as text, and their file.
#include "runner/plan/box_notes.hpp"

#include "common/base/text.hpp"
#include "runner/plan/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace pi_agent {

namespace {

constexpr std::size_t paths_named = 3;
constexpr std::size_t ranges_named = 8;
constexpr std::size_t path_length = 80; // bytes of one name

// A few of them, escaped and short.
std::string names_of(const std::vector<std::string> &paths)
{
    std::string names;
    for (std::size_t index = 0; index < std::min(paths.size(), paths_named); ++index)
        names += (index == 0 ? "" : ", ") + ("`" + escape_for_display(paths[index].substr(0, path_length)) + "`");
    if (paths.size() > paths_named) names += " and " + std::to_string(paths.size() - paths_named) + " more";
    return names;
}

std::string hidden_line(const std::vector<std::string> &hidden)
{
    if (hidden.empty()) return "";
    return "- Hidden in the project, though they look empty: " + names_of(hidden) + " (other file systems).\n";
}

// What git runs things from is said in one word; it is most of it.
std::string protected_lines(const BoxFacts &facts)
{
    const auto is_git = [](const std::string &path) { return path.find(".git/") != std::string::npos; };
    std::string text;
    if (std::any_of(facts.read_only.begin(), facts.read_only.end(), is_git))
        text +=
            "- Read-only in the repository, because git runs things from there for the user: `.git/config`, `.git/hooks` and their like, "
            "of submodules and worktrees too. So `git config`, `git remote add`, tracking (`git push -u`) and new submodules fail or only "
            "warn; "
            "commit, branch, merge, rebase, stash, fetch and `git worktree add` work. Ask the user to do the others outside.\n";
    std::vector<std::string> others;
    std::copy_if(facts.read_only.begin(), facts.read_only.end(), std::back_inserter(others),
                 [&](const auto &path) { return !is_git(path); });
    if (!others.empty()) text += "- Read-only in the project: " + names_of(others) + ".\n";
    if (!facts.knows_ids)
        text += "- Access control lists (a `+` in `ls -l`) that name other accounts or groups cannot be copied here. A copy that keeps "
                "permissions (options `-p`, `-a`) and `sed -i` say \"preserving permissions: Invalid argument\" and leave those entries "
                "out; with the option `--no-preserve=mode` a copy leaves them out without an error. Ask the user to do it outside where "
                "the entries matter.\n";
    if (facts.masked) text += "- Some files of the project cannot be read (permission denied): the administrator keeps them from you.\n";
    return text;
}

std::string toolchain_lines(const BoxFacts &facts)
{
    std::string text;
    if (!facts.toolchains.empty()) text += "- Toolchains of the user's, read-only: " + names_of(facts.toolchains) + ".\n";
    if (!facts.caches.empty())
        text += "- Caches that begin as the user's, so that what is in them need not be downloaded, and whose changes are gone when the "
                "session ends: " +
                names_of(facts.caches) + ".\n";
    return text;
}

std::string network_line(const NetworkPolicy &network)
{
    switch (network.mode) {
    case NetworkMode::full:
        break;
    case NetworkMode::none:
        return "none, but a loopback of your own: servers that you start reach each other, and nobody else reaches them, not even the "
               "user's "
               "browser. Nothing can be downloaded.";
    case NetworkMode::loopback:
        return "the host's loopback alone (127.0.0.0/8, ::1). The user's browser on this host reaches a server of yours on 127.0.0.1; "
               "downloads work only through a proxy that listens there.";
    case NetworkMode::listed:
        std::string ranges;
        for (std::size_t index = 0; index < std::min(network.allowed.size(), ranges_named); ++index)
            ranges += (index == 0 ? "" : ", ") + to_string(network.allowed[index]);
        if (network.allowed.size() > ranges_named) ranges += " and " + std::to_string(network.allowed.size() - ranges_named) + " more";
        return "these addresses alone, in both directions: " + ranges +
               ". Name servers and 127.0.0.1 are reached only if they are among them.";
    }
    return "the host's, not restricted by the sandbox.";
}

std::string scratch_limit(ScratchKind kind)
{
    return kind == ScratchKind::tmpfs ? std::string("in memory, at most ") + scratch_memory_share + " of the host's, " : "";
}

std::string limits_line(const BoxFacts &facts)
{
    if (!facts.limited) return "";
    const LimitsPolicy &limits = facts.limits;
    const std::string memory = limits.memory ? limits.memory->text + " of memory"
                                             : std::to_string(limits.memory_share ? limits.memory_share->amount : session_memory_percent) +
                                                   " % of the host's memory";
    return "- Limits of the session: " + std::to_string(limits.tasks ? limits.tasks->amount : session_tasks) + " processes and threads, " +
           memory + (limits.cpu ? ", " + limits.cpu->text + " of one processor" : "") +
           (limits.runtime ? ", " + limits.runtime->text + " of time" : "") +
           ". A process that takes too much memory is killed (status 137): use fewer parallel jobs then.\n";
}

} // namespace

std::string box_notes(const BoxFacts &facts)
{
    return "# The sandbox you work in (pi-agent)\n\n"
           "- You are the account `" +
           facts.account + "`. Files that you make in the project belong to the user.\n- You can write to the project `" +
           escape_for_display(facts.project) + "`, to your home `" + facts.home + "` (kept) and to /tmp and /var/tmp (yours alone, " +
           scratch_limit(facts.scratch) +
           "gone when the session ends).\n"
           "- Everything else is read-only or hidden: most of /etc, other homes" +
           (facts.confined ? ", other users' processes, the host's services" : "") + ". What you miss may be on the host all the same.\n" +
           (facts.confined ? ""
                           : "- There is no sandbox around your processes: nothing but the rights of your account keeps them from those of "
                             "others and from devices.\n") +
           hidden_line(facts.hidden) + protected_lines(facts) + "- Network: " + network_line(facts.network) +
           "\n"
           "- `sudo` gives no rights: it runs the command as you. System packages cannot be installed.\n"
           "- pip, npm -g, cargo install and go install put programs into ~/.local, which is kept" +
           (facts.caches.empty() ? ", as are their caches" : "") + ".\n" + toolchain_lines(facts) +
           "- There is no display, ssh-agent or key of the user's, and nobody answers an editor: `git commit -m`, not `git "
           "commit`.\n" +
           limits_line(facts) + (facts.settings_lock ? "- The settings.json of the agent is locked by the administrator.\n" : "");
}

} // namespace pi_agent
