// What each code of a message and each fault of doctor means and what to do: the text of docs/troubleshooting.md.
#include "admin/diagnose/advice.hpp"

namespace pi_agent {

// What each fault that doctor names means and what to do: for pi-agentctl explain NAME, and docs/troubleshooting.md.

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

// What each code of a message means and what to do: the text of docs/troubleshooting.md and of pi-agentctl explain CODE.

const std::vector<Advice> &advice_on_failures()
{
    static const std::vector<Advice> advice = {
        {"E64", "this host has no user …\nat most … paths at once",
         "A word of the command line cannot be used here: a name that does not exist, or options that exclude each other.",
         "Correct the command. `pi --pi-agent-help` lists the options of `pi`.",
         "Correct the command. `pi-agentctl help COMMAND` lists the options of a command."},
        {"E64-option", "unknown option …\n--pi-agent-tmpdir needs a directory\nunknown command …",
         "The option or command does not exist, or its value is missing. Options of `pi` begin with `--pi-agent-` and come before all "
         "others.",
         "Run `pi --pi-agent-help`, or `pi --help` for the agent's own options.", "Run `pi-agentctl help`, or `pi-agentctl help COMMAND`."},
        {"E64-update", "the agent is installed for the whole host, so a session cannot update it",
         "`pi update` would replace the agent's program, which belongs to the host. `pi update --extensions` works.",
         "Ask the administrator for a newer version.", "Run `sudo pi-agentctl agent upgrade`."},
        {"E64-file",
         "… of your arguments is not handed to the agent\nthe arguments name more than … files\nthe arguments and the environment together "
         "are larger than …",
         "Files that arguments name are copied for the session where it does not see them. A directory, a file of another process, or too "
         "many or too large files are not copied.",
         "Move the file into the project, or pass its text on standard input.", ""},
        {"E69", "the agent was not started: …\nthe session's gate does not serve: …",
         "The sandbox could not be built. The message names the step.", "Send the message to the administrator.",
         "Run `sudo pi-agentctl doctor`. `sudo pi-agentctl history --failed` lists the failed starts."},
        {"E69-method",
         "sandbox.method …\nthe host changes the session's unit: …\nthis host runs systemd …\nroot of this container …\nsandbox.method "
         "docker needs docker's daemon",
         "The policy's `sandbox.method` needs a program, a version or a right that this host does not have.",
         "Send the message to the administrator.",
         "Install what the message names, or set another `sandbox.method` in the policy. `docs/platforms/methods.md` compares the "
         "methods."},
        {"E69-limits", "this host does not enforce the policy's limits\nthis host cannot enforce the policy's limits",
         "The policy sets a limit under `limits`, and this host lacks the controller for it. No session starts without a limit that the "
         "policy sets.",
         "Send the message to the administrator.", "Enable the controller that the message names, or remove the key from the policy."},
        {"E69-network", "this host cannot enforce the policy's network\nthis host cannot lead connections of a session to its gate",
         "The policy restricts `network`, and this host cannot filter addresses, make a network namespace, or lead connections to the "
         "gate.",
         "Send the message to the administrator.", "Do what the message says, or change `network` in the policy."},
        {"E69-mount", "… is id-mapped already and cannot be mapped again\n… ask the administrator to make it optional",
         "The kernel cannot show this directory to the agent with changed owners (an id-mapped mount), or a toolchain cannot be mounted. "
         "Network and FUSE file systems are frequent reasons.",
         "Work in a directory on a local disk, or ask the administrator.",
         "Move the root to a file system that supports id-mapped mounts. `docs/platforms/file-systems.md` lists them."},
        {"E69-inside", "sudo cannot work in this shell",
         "The shell has `no_new_privs` set, as all processes inside a session. sudo gains no privileges there.",
         "Start `pi` from an ordinary shell, not from inside a session.", ""},
        {"E69-systemd", "connecting to systemd failed\nsystemd did not move the runner into its scope",
         "The runner asks systemd over the system bus to start the session, and got no answer.", "Send the message to the administrator.",
         "Check `systemctl status` and the unit `dbus.service`. Where systemd does not run, set `sandbox: {method: bwrap}`."},
        {"E69-sudo", "starting /usr/bin/sudo", "`pi` starts its runner through sudo, and could not execute sudo.",
         "If the message names open files, raise the limit with `ulimit -n`. Else ask the administrator.", "Install the package `sudo`."},
        {"E69-node", "Slurm gave this session no node: …\nstarting /usr/bin/srun\nthe node … has pi-agent …, and this host has …",
         "The policy runs sessions on nodes of a Slurm cluster (`placement`), and `srun` ended before the session began. The message has "
         "Slurm's words.",
         "`sinfo` shows the cluster, and `squeue --me` your jobs. Send the message to the administrator.",
         "Correct what the message names: the keys of `placement`, Slurm itself, or pi-agent on the node. `docs/platforms/slurm.md` says "
         "what each host needs."},
        {"E69-doctor", "doctor found faults, or a sandbox that does not hold",
         "`pi-agentctl doctor` found a way around `pi`, a reason why `pi` would not start, or a probe of the sandbox that passed and "
         "should not.",
         "", "Follow the remedy of each line. `pi-agentctl explain NAME` explains a fault by its name, such as `sudo-rule`."},
        {"E70", "internal error: …\na bug of pi-agent: …", "pi-agent met a state that it does not expect.",
         "Send the message to the administrator.", "Report the message with the output of `sudo pi-agentctl version`."},
        {"E71", "opening …\nreading …\nmaking …",
         "The operating system refused a step. The end of the message is its reason, such as \"Permission denied\".",
         "If the path is yours, correct its owner or mode. Else send the message to the administrator.",
         "Correct what the message names, and run `sudo pi-agentctl doctor`."},
        {"E71-disk", "… No space left on device\n… Disk quota exceeded\n… Read-only file system\nthe disk is full: …",
         "A file system has no space left, a quota is used up, or the file system is read-only.",
         "Free space in your home and projects, or ask the administrator.",
         "`sudo pi-agentctl state` shows what each user's agent uses, and `sudo pi-agentctl state prune` removes caches. `scratch: tmpfs` "
         "keeps temporary directories in memory."},
        {"E71-record", "the session cannot be recorded",
         "Every session is recorded before it starts. Neither the journal nor `/var/log/pi-agent` accepts an entry.",
         "Ask the administrator.", "Start `systemd-journald`, or make `/var/log/pi-agent` writable for root."},
        {"E71-runner",
         "sudo or the runner was killed by signal …\nthe runner ended without an answer\nthe runner does not answer\nsudo ended and the "
         "runner does not answer\nsudo (process …) has closed the connection without an answer\npi on the node … ended, and the session "
         "with it\nthe process of pi that carries the session …",
         "The process that supervises the session is gone, and the session ended with it. Somebody killed it, or memory ran out.",
         "Start `pi` again. If it happens again, ask the administrator.",
         "`journalctl -t pi-agent-runner` and `journalctl -k` show why the process ended."},
        {"E71-slow", "… made no progress for … seconds and was stopped\n… did not send its answer in time",
         "A step waited for a file system or a program that does not answer.",
         "Check whether a network file system that you use answers, and start `pi` again.",
         "Check the file systems below the user's home and roots."},
        {"E75", "… try again", "Something temporary is in the way.", "Start `pi` again in a moment.", "Run the command again in a moment."},
        {"E75-sessions",
         "limit: … has … sessions, the most that a user may have at once\nlimit: … sessions of yours are already starting\n"
         "limit: … questions of yours about your sessions are already being answered",
         "The policy's `limits.sessions` bounds the sessions that a user has at once.",
         "Quit one of your sessions. `pi-agentctl sessions` lists them, and `pi-agentctl stop SESSION` ends one. If the message is about "
         "questions, ask again in a moment.",
         "`sudo pi-agentctl sessions --user NAME` lists them, and `sudo pi-agentctl stop SESSION` ends one. `limits.sessions` sets the "
         "number."},
        {"E75-drain", "limit: the administrator lets no session start on this host for now",
         "The administrator drains the host (`pi-agentctl drain`): sessions that run go on, and no other starts. A boot ends that, too.",
         "Try again later. If there are words of the administrator's, they are in the message.",
         "`sudo pi-agentctl drain --off` lets sessions start again. `sudo pi-agentctl sessions` says since when the host is drained."},
        {"E75-changed",
         "the policy changed while the session was being prepared\nyour account or its groups changed while …\nthe administrator ran "
         "pi-agentctl while …",
         "What the decision rests on changed before the agent started.", "Start `pi` again.", ""},
        {"E75-busy",
         "another session of yours keeps …\nanother start of the agent of … has been preparing\nanother session of yours is "
         "ending\nanother apply or edit is running",
         "Another session, start or command of `pi-agentctl` holds a lock.",
         "End your other session, or wait a moment, and start `pi` again.",
         "Wait for the other command. `pgrep -a pi-agent` shows what runs."},
        {"E75-size",
         "limit: the repository in … has more than … paths\nlimit: … cannot be searched for files to mask\nlimit: protecting and masking "
         "paths of the project needs …",
         "The policy protects or masks paths of the project (`projects.protect`, `projects.mask`), and the project has more of them than a "
         "start can handle.",
         "Remove worktrees and submodules that you do not need, or start in a smaller directory.",
         "Use `projects.scope: project`, or list fewer paths."},
        {"E77", "denied: …", "The policy or a rule of the runner denies the start. The message says which.",
         "Ask the administrator if the reason is not clear.",
         "`sudo pi-agentctl explain --user NAME` shows what the policy grants. `sudo pi-agentctl history --failed` lists refusals."},
        {"E77-user", "the policy … does not authorise …", "The policy has no entry for this user, and none for a group of theirs.",
         "Ask the administrator to add you. If they added you to a group, log in again.",
         "Run `sudo pi-agentctl edit`, add the user or a group of theirs under `users`, and run `sudo pi-agentctl apply`."},
        {"E77-root", "denied: … is outside the project roots of …\ndenied: … lies on another file system, mounted inside the root",
         "`pi` starts only in the roots that the policy gives you, and below them. File systems mounted inside a root do not count.",
         "`cd` to one of the roots that the message lists. `pi-agentctl explain` lists them too.",
         "Add the directory to `roots` of the user's entry. No `apply` is needed for that."},
        {"E77-directory",
         "denied: the working directory was deleted\ndenied: you may not enter …\ndenied: the working directory was replaced",
         "The directory where you started `pi` is gone, replaced, or closed to you.", "`cd` to the directory again, or to another one.",
         ""},
        {"E77-mask",
         "denied: … is in what the policy masks in … (projects.mask: …)\ndenied: … is in what the policy protects (projects.protect: …)",
         "The policy keeps this directory from sessions (`projects.mask`), or you asked for a session that shows nothing but what the "
         "policy protects (`projects.protect`).",
         "`cd` to another directory. If the message names `projects.protect`, leave `--pi-agent-scope=project` out or add "
         "`--pi-agent-read-only`.",
         "Change `projects.mask` of the policy or of the root. A pattern counts from the root and, where a session shows only a "
         "repository, from its top as well."},
        {"E77-off", "denied: the administrator has switched the agent off", "The policy says `wrapper: {enable: false}`.",
         "Ask the administrator when the agent is back.", "Set the key to `true` or remove it, and run `sudo pi-agentctl apply`."},
        {"E77-uid0", "denied: root cannot run the agent", "The agent runs for an ordinary user, and never for root.",
         "Run `pi` as an ordinary user, without sudo.", "Run `pi` as an ordinary user: `sudo -u NAME -i`."},
        {"E77-sudo", "sudo did not run the runner",
         "The sudo rule of pi-agent is missing, does not apply to you, or another rule takes its place. sudo's own words are in the "
         "message.",
         "If you were added to a group since your login, log in again. Else ask the administrator.",
         "Run `sudo pi-agentctl doctor`, which names the rule. After a change of users or groups run `sudo pi-agentctl apply`."},
        {"E77-namespace",
         "denied: called from another … namespace\ndenied: the host's … namespace cannot be seen from here\n… is in a user namespace "
         "without the host's root",
         "`pi` was started in a container, in `unshare` or in a similar environment, where paths, accounts or processes are not those of "
         "the host.",
         "Run `pi` from an ordinary shell of this host.",
         "To use pi-agent inside a container, install it there: `docs/platforms/containers.md`."},
        {"E77-caller", "denied: … an agent's own account\ndenied: uid … is not in the user database of this host",
         "The account that started `pi` cannot be a user of it: it is an agent's own, unknown to the host, or in root's group.",
         "Run `pi` from your own account.", "Correct the account that the message names."},
        {"E77-by-hand", "only root can run this program\n… do not run it by hand\ndenied: not called through sudo",
         "The program is a part of pi-agent that only `pi` and its runner start.", "Run `pi` instead.", "Use `pi-agentctl` instead."},
        {"E77-streams", "denied: standard input, output and error are on different terminals\ndenied: standard input is a directory",
         "The agent gets one terminal, pipes, regular files and sockets. Other devices and directories could reach the host.",
         "Redirect the stream that the message names to a file or to `/dev/null`.", ""},
        {"E77-tmpdir", "denied: --pi-agent-tmpdir: …", "The directory for TMPDIR must be your own directory inside the project's root.",
         "Name another directory, or leave the option out: each session has a temporary directory of its own.", ""},
        {"E77-start", "denied: --pi-agent-… asks for more than the policy gives\ndenied: --pi-agent-allow …",
         "The options `--pi-agent-network`, `--pi-agent-read-only` and `--pi-agent-scope` take something away from one session. They never "
         "give it more than the policy does. `--pi-agent-allow` adds a host, of those in `may_grant` of the policy's `network`.",
         "Leave the option out, or ask for less. `pi-agentctl explain` lists the hosts that you may add.",
         "Change `network` of the policy, of the user or of the root, if the user shall have more. `may_grant` names hosts that users may "
         "add."},
        {"E77-job", "denied: your sessions run in jobs of the cluster alone (…)",
         "The policy says `placement: {engine: slurm}`. The runner starts no session whose caller is outside of a job, whatever variables "
         "say.",
         "Type `pi`, which asks for a job itself, or start it in one of your own: `srun --pty pi`.",
         "Say `placement: {engine: none}` for users whose sessions shall run on this host."},
        {"E77-admin", "… only root can run it\nonly root can …",
         "The command changes the host, or reads what only root may read. `sessions`, `stop`, `history`, `denials` and `state` work "
         "without root for your own sessions, if the policy names you.",
         "Leave out `--all`, and `--user` with another name, or ask the administrator.", "Run the command with `sudo`."},
        {"E77-sessions", "the policy keeps the sessions of your own agent outside",
         "The policy's `config.classes` keeps the directory `sessions` out of the sandbox, so `--pi-agent-sessions` cannot copy it.",
         "Start `pi` without the option.", "Give `sessions` another class under `config.classes`."},
        {"E78", "…",
         "A file of the policy, of the host or of your configuration has a mistake. The message names the file, and the line where there "
         "is one.",
         "If the file is yours, correct it. Else ask the administrator.", "Correct the file, and run `sudo pi-agentctl check`."},
        {"E78-no-policy", "cannot open the policy /etc/pi-agent/policy.yaml", "Nobody can start `pi` before there is a policy.",
         "Ask the administrator.",
         "Run `sudo pi-agentctl init`, look at the file with `sudo pi-agentctl edit`, and run `sudo pi-agentctl apply`."},
        {"E78-policy", "the administrator's policy has … errors, so nobody can start pi\n/etc/pi-agent/policy.yaml:LINE:COLUMN: KEY: …",
         "The policy has errors. No session starts while there is one. An error in a file of `users.d` stops only that user.",
         "Ask the administrator to run `sudo pi-agentctl check`.",
         "Run `sudo pi-agentctl check`: it lists each error with file, line and remedy. `pi-agentctl explain KEY` explains a key. `sudo "
         "pi-agentctl rollback` returns to the policy that was applied before."},
        {"E78-root", "the root … is granted by a group whose members control the host",
         "A root of yours cannot be used as the policy writes it.",
         "If the directory does not exist, create it. Else ask the administrator.", "Correct `roots` in the policy."},
        {"E78-config", "… this is not valid JSON\n… is not a file that you can read\n… could not be copied within … seconds",
         "A file of your configuration (`~/.pi/agent`), of git or of your variables cannot be used by a session.",
         "Correct the file that the message names. Nothing was changed.", "`config.classes` can leave parts of the configuration out."},
        {"E78-agent", "the agent … cannot be run",
         "The program that `agent.binary` names is missing, cannot be executed, or is not readable for the agent.",
         "Ask the administrator.",
         "Run `sudo pi-agentctl install-agent`, or correct `agent.binary`. Then run `sudo pi-agentctl apply` and `sudo pi-agentctl "
         "doctor`."},
        {"E78-account", "the agent's account … does not exist\nthe agent's account … is in the group …",
         "The agent runs as an account of its own. It is missing, or it has rights that it must not have.", "Ask the administrator.",
         "Run `sudo pi-agentctl apply`, which creates accounts. Take the account out of the group that the message names."},
        {"E78-trust", "the … cannot be trusted: …\n… is writable by others than root",
         "Root reads or runs this file, and somebody else than root can change it or a directory above it.", "Ask the administrator.",
         "Examine the file before you trust it again. Then give it to root and take the write permission from group and others."},
        {"E78-protect",
         "… but you cannot write to it; the agent could change that\n… is a file of git that you cannot read\n… names (hard links); the "
         "policy protects this one",
         "The policy protects this path (`projects.protect`), and a start cannot make it safe from the agent.",
         "Correct the owner, the mode or the link that the message names.", "List fewer paths under `projects.protect`."},
        {"E78-path", "… is not a character device\n… is not shown to sessions\n… is readable for others than root",
         "A file or directory that the policy names is missing, of another type, or too open.", "Ask the administrator.",
         "Correct the path, or the key that the message names."},
        {"E78-home", "… belongs to … but must belong to …\nthe agent's home is on another file system\nthe agents' homes are not in …",
         "The directory that keeps the agent's home is not as pi-agent made it, or the homes are not where `agent.state_dir` says.",
         "Ask the administrator.",
         "Correct what the message names. `sudo pi-agentctl state export` copies the agent's sessions, and `sudo pi-agentctl state reset` "
         "empties the home."},
    };
    return advice;
}

} // namespace pi_agent
