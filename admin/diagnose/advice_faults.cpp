// What each fault that doctor names means and what to do: for pi-agentctl explain NAME, and docs/troubleshooting.md.
#include "admin/diagnose/advice.hpp"

namespace pi_agent {

const std::vector<Advice> &advice_on_faults()
{
    static const std::vector<Advice> advice = {
        {"policy", "", "`pi-agentctl check` finds an error in the policy, or the host does not fit it.", "",
         "Run `sudo pi-agentctl check`."},
        {"other-pi", "", "A user's shell starts a `pi` that is not the wrapper, or the agent can be started beside it.",
         "Remove your own copy or alias of `pi`.", "Remove the other copy. `sudo pi-agentctl apply` hides the agent's program again."},
        {"no-pi", "", "A user's login shell finds no `pi`.", "Add `/usr/bin` to PATH in your shell's start files.",
         "Check the user's shell and PATH."},
        {"shell", "", "A user's login shell did not answer in time, so `doctor` does not know which `pi` it starts.",
         "Correct the start files of your shell.", "Check the user's login shell and its start files."},
        {"open-agent", "", "Everybody can run the agent's program without the sandbox.", "",
         "Run `sudo pi-agentctl apply`, which hides it. Set `wrapper.hide_direct_binary` to `true`."},
        {"sudo-rule", "", "The sudo rule of pi-agent is missing, differs from the policy, or sudo does not read it.", "",
         "Run `sudo pi-agentctl apply`."},
        {"sudo-rule-wider", "", "Another sudo rule lets a user run the runner with arguments.", "",
         "Change the rule that the fault names with `sudo visudo`."},
        {"sudo-rule-shadowed", "", "A later sudo rule takes the place of pi-agent's rule: it asks for a password or forbids the command.",
         "", "Move or change the rule that the fault names with `sudo visudo`."},
        {"sudo-environment", "", "A later line of the sudo configuration passes variables of the user to the runner.", "",
         "Change the line that the fault names with `sudo visudo`."},
        {"sudo-terminal", "", "A later line of the sudo configuration needs a terminal, or logs what passes through it.", "",
         "Change the line that the fault names with `sudo visudo`."},
        {"sudo-start", "",
         "A later line of the sudo configuration keeps the runner from starting, ends sessions, or makes `pi` hang: `log_subcmds`, "
         "`intercept`, `command_timeout`, `noexec`, `runcwd`, `runchroot`, `stay_setuid`, `rlimit_…`.",
         "", "Change the line that the fault names with `sudo visudo`, so that it leaves the runner out."},
        {"sudo-configuration", "", "`visudo -c` refuses the sudo configuration, or `cvtsudoers` is missing.", "",
         "Correct the configuration with `sudo visudo`. The package `sudo` has `cvtsudoers`."},
        {"own-files", "", "Somebody else than root can change a program of pi-agent, or it is setuid.", "",
         "Install pi-agent again, and find out who changed the file."},
        {"agent-account", "", "An agent's account or the agents' group is missing, or the account is not in the group.", "",
         "Run `sudo pi-agentctl apply`, or create the account where `agent.create_user` is `false`."},
        {"no-sandbox", "", "`sandbox.method` is `none`: only the rights of its account confine the agent.", "", "Choose another method."},
        {"shared-account", "", "The agents of several users run as one account and can reach each other's files.", "",
         "Set `agent: {accounts: per-user}`, and run `sudo pi-agentctl apply`."},
        {"outside-sessions", "", "An agent's account has a crontab, lingering services, or processes outside sessions.", "",
         "Examine them, and remove what you did not set up."},
        {"state", "", "The state directory, or a directory of it, lies on a network file system, where locks and owners are not reliable.",
         "", "Mount a local file system there, or move the homes to one (`agent.state_dir`, `sudo pi-agentctl state move`)."},
        {"disk", "", "No quota of the file system holds agents to `limits.disk`, and sessions start without it.", "",
         "Mount a file system with project quotas for the state directory (`docs/concepts/disk.md`), or let "
         "no session start: `limits.disk_without_quota: refuse`."},
        {"cluster", "", "The policy runs sessions on nodes of a Slurm cluster, and Slurm does not answer on this host.", "",
         "Run `sinfo`, and look at Slurm's daemons. `docs/platforms/slurm.md` says what each host needs."},
        {"root", "", "A root lies on a file system that does not support id-mapped mounts.", "Work in another root.",
         "Move the root. `docs/platforms/file-systems.md` lists the file systems."},
        {"link", "",
         "A symlink in files that `pi` reads as the user leads out of a root, where an agent can have made it. `pi` does not follow "
         "it.",
         "Remove the link, or replace it by a copy.", ""},
        {"leftovers", "", "Sessions whose runner was killed left directories.", "",
         "The next start of `pi` removes them. `journalctl PI_AGENT_EVENT=problem` shows why they are there."},
        {"unfinished", "", "An `apply`, `rollback` or `edit` was killed before its end, or runs just now.", "",
         "Run `sudo pi-agentctl apply`. It finishes the change, or puts the host back as it was before."},
        {"doctor", "", "`doctor` could not look at something.", "", "Read the fault: it names what failed."},
        {"sandbox", "", "The sandbox could not be tried, because the user of `--user` has no usable root.", "",
         "Name another user, or create the root."},
    };
    return advice;
}

} // namespace pi_agent
