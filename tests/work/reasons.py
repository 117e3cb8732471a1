"""Why work inside cannot be the same: docs/reference/differences.md is made of these, and each is a case's reason."""

from case import Difference

NO_SET_ID_FILES = Difference(
    "`chmod u+s` or `g+s` on a file fails, and `u+s` on a directory",
    "A set-id file in a project would run with the rights of its owner, who is you.",
    "Set the bit outside, or in the package's installation.",
    "set-id bits on files",
)
ONE_GROUP = Difference(
    "`chgrp` to another group of yours fails; what `mv` or `cp -a` takes to another file system loses such a group, and with it a directory's set-gid bit",
    "The agent's account is in its own group alone, so that no group of yours opens anything to it.",
    "Make the directory set-gid, which gives new files its group; or run `chgrp` outside.",
    "groups that are not",
)
NO_OTHER_OWNER = Difference(
    "The files' owner is the agent's account, and `chown` to your name fails",
    "The mount exchanges the agent's account and yours: inside, what is yours shows as the agent's.",
    "Leave the owner alone: outside, every file in the project is yours.",
    "other owners",
)
ACCOUNT_NAME = Difference(
    "`whoami` and `id` name another account",
    "The agent runs under an account of its own, which is what keeps it from everything of yours that the policy does not show.",
    "Take names from the project or from git's settings, not from the account.",
    "You are the account",
)
NO_CORES = Difference(
    "No core file is written, whatever `ulimit -c` is asked for",
    "A core holds the memory of a program, with every key in it, and the host's handler of cores runs as root.",
    "Run the program outside.",
    "core files",
)
NO_HOST_PROCESSES = Difference(
    "`ps` and `/proc` show the session's own processes alone",
    "The others' command lines and environments are theirs.",
    "Nothing of yours that runs outside can be seen or signalled: do that outside.",
    "other users' processes",
)
NO_SUDO = Difference(
    "`sudo` runs the command as the agent and says so",
    "A session gains no rights, by no program: its processes have `no_new_privs`.",
    "Have the administrator install what is needed; pip, npm, cargo and go install for the agent without it.",
    "`sudo` gives no rights",
)
NO_OTHER_HOMES = Difference(
    "The homes of others, and what is in yours beside the project and the toolchains, are not there",
    "A session sees what the policy shows it.",
    "Put what is needed into the project, name it when you start (`pi @FILE`; a picture, too), or list it in `toolchains` or `view_paths`.",
    "other homes",
)
NO_SYSTEMCTL = Difference(
    "`systemctl`, `journalctl` and whatever speaks to the system's bus fail",
    "The bus starts programs as root for those who may ask for it; a session sees neither bus nor journal.",
    "Start a service as a plain process, or have it started outside.",
    "systemctl",
)
GIT_CONFIG = Difference(
    "`.git/config` and `.git/hooks` cannot be written: `git config`, `remote add`, `branch -m`, `sparse-checkout`, `submodule add`, `push -u` fail or do half",
    "Both name programs that git runs as you, outside, the next time that you type `git`.",
    "Run the command outside, use `git -c NAME=VALUE` inside, or take them out of `projects.protect`.",
    "`.git/config`",
)
READ_ONLY_TOOLCHAINS = Difference(
    "Managers of versions in your home add and remove none: `pyenv install`, `rustup update`, `sdk install`, `nvm install` fail",
    "Toolchains are shown read-only: you run them outside, too, and an agent could put anything into them.",
    "Run the manager outside. Packages of environments can be changed inside, until the session ends; what is to stay goes into the project (`.venv`).",
    "Toolchains of the user's, read-only",
)
GIT_GARBAGE = Difference(
    "`git count-objects -v` calls `.git/config`, `.git/hooks` and their like garbage",
    "A file `.git/commondir` that names its own directory keeps the agent from making one that names another, and git takes it for the mark of a worktree.",
    "Ignore these lines: nothing is removed. The file goes with the session.",
    "calls these garbage",
)
GIT_OUTSIDE_WAITS = Difference(
    "Outside, while a session works in the repository, git cannot write `.git/config`: \"Device or resource busy\"",
    "Git replaces the file, and with the old one its protection inside would go, unseen.",
    "Do it when the session has ended; or edit the file in place.",
)
VARIABLES = Difference(
    "Variables of your shell are not there, but for language, terminal, places that a session shows (`PATH`, `GIT_DIR`) and what the policy lists",
    "A shell's environment often holds keys, and every command inside can read it.",
    "Put what the agent needs into `~/.pi/agent/env`, or have the policy's `env` list it.",
    "variables of the user",
)
ACCESS_LISTS = Difference(
    "Access lists that name other accounts show them as 4294967295, and cannot be set or copied",
    "A session knows two accounts, yours and the agent's: the others have no number in it.",
    "Set them outside; a default list of the directory is inherited inside, too.",
    "Access control lists",
)
SOCKET_LISTS = Difference(
    "`ss` says \"Cannot open netlink socket\", and tells less of each socket",
    "Of netlink a session has the protocol for addresses and routes alone: the others are parts of the kernel that administrators need.",
    "Believe what it lists: it reads `/proc/net` instead. `netstat` says the same without the message.",
)
NO_COUNTERS = Difference(
    "`perf` and whatever else counts events of the processor fail",
    "`perf_event_open` is closed: it measures other programs and the kernel, and has had many holes.",
    "Measure outside, or with `callgrind`, `gprof`, or `time`.",
    "`perf`",
)
DOTFILES = Difference(
    "Settings in your home (`~/.bashrc`, `~/.profile`, `~/.vimrc`) do not count",
    "A session's home is the agent's own: yours holds keys, histories and mail beside them.",
    "Write the same file in a session once: the agent's home is kept. Or keep it in the project.",
    "dotfiles",
)
GIT_PROGRAMS = Difference(
    "Programs that your own git settings name do not run: filters other than LFS's, aliases with `!`, diff and merge drivers",
    "They lie in your home or are lines of shell of yours, which a session does not see; and it starts nothing that it was not shown.",
    "Set them in the repository from outside (`git config filter.NAME.clean …`), with a program that the session has.",
    "git settings nothing that starts a program",
)
UNSIGNED = Difference(
    "Commits and tags are not signed, whatever the repository's or your settings say",
    "A session has no key of yours: whoever holds one can sign anything in your name.",
    "Have the policy name a key for the agent (`users.NAME.signing`), or sign outside before you push: `git rebase --exec 'git commit --amend --no-edit --gpg-sign' UPSTREAM`.",
    "not signed",
)
NO_NAMESPACES = Difference(
    "Programs that build a sandbox of their own fail: `unshare`, `bwrap`, `podman`, chromium's",
    "New namespaces open much of the kernel to whoever may make them.",
    "Run chromium and what drives it with `--no-sandbox`: the session is the sandbox. Run containers outside.",
    "makes namespaces",
)
NO_PERSONALITY = Difference(
    "`setarch` fails, so no program runs without random addresses",
    "The same call switches protections of programs off.",
    "Work with random addresses (in gdb: `set disable-randomization off`).",
    "setarch",
)
OLD_SESSIONS = Difference(
    "`pi -c` and `pi --resume` do not find the sessions that your own pi had",
    "They hold what it read, also in other places and of your variables, and every command inside could read them.",
    "Start once with `pi --pi-agent-sessions`, which brings copies of those of this directory in; or have the policy say `config: {classes: {sessions: once}}`.",
)
SESSION_FILES = Difference(
    "`--session FILE` of a file outside of the project is refused",
    "The agent goes on writing that file, and files that you name are handed over as copies, to be read.",
    "Use `--fork FILE`, which goes on with a copy, or move the file into the project.",
)
