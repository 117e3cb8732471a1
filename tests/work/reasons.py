"""Why work inside cannot be the same. docs/reference/differences.md is made of these, and each is the reason of a case."""

from case import Difference

NO_SET_ID_FILES = Difference(
    "`chmod u+s` or `g+s` on a file fails, and so does `u+s` on a directory",
    "A set-id file in a project would run with the rights of its owner: you.",
    "Set the bit outside, or when you install the package.",
    "set-id bits on files",
)
ONE_GROUP = Difference(
    "`chgrp` to another group of yours fails. `mv` and `cp -a` to another file system lose such a group, and with it a directory's set-gid bit",
    "The agent's account is in its own group alone. Of your groups a session has the primary one, and the one whose entry in the policy grants the root.",
    "Make the directory set-gid, so that new files get its group. Or run `chgrp` outside.",
    "groups that are not",
)
NO_OTHER_OWNER = Difference(
    "The agent's account owns the files, and `chown` to your name fails",
    "The mount exchanges the agent's account and yours. Inside, your files show as the agent's.",
    "Leave the owner alone: outside, every file in the project is yours.",
    "other owners",
)
ACCOUNT_NAME = Difference(
    "`whoami` and `id` name another account",
    "The agent has an account of its own. That keeps it from everything of yours that the policy does not show.",
    "Take names from the project or from git's settings, not from the account.",
    "You are the account",
)
OWN_SCHEDULING = Difference(
    "Before systemd 257, as on Debian 12, a process sets niceness, scheduling, affinity and limits for its own threads alone: `renice -p`, `taskset -p`, `ionice -p` and `prlimit --pid` of others fail",
    "Sessions of one agent are of one account, and a number may mean a process of another session.",
    "Start the program with `nice`, `taskset`, `ionice` or `prlimit`.",
    "of other processes",
)
NO_CORES = Difference(
    "No core file is written, whatever `ulimit -c` says",
    "A core holds the memory of a program, with every key in it. The host's handler of cores runs as root.",
    "Run the program outside.",
    "core files",
)
NO_HOST_PROCESSES = Difference(
    "`ps` and `/proc` show only the session's own processes",
    "Command lines and environments of other processes are not the agent's business.",
    "To see or signal your processes outside, do it outside.",
    "other users' processes",
)
NO_SUDO = Difference(
    "`sudo` runs the command as the agent and says so",
    "A session gains no rights through any program: its processes have `no_new_privs`.",
    "Ask the administrator to install what you need. pip, npm, cargo and go install for the agent without sudo.",
    "`sudo` gives no rights",
)
NO_OTHER_HOMES = Difference(
    "Other homes are missing, and so is all of yours but the project and the toolchains",
    "A session sees only what the policy shows it.",
    "Put what is needed into the project, name it when you start (`pi @FILE`, also for a picture), or have it listed in `toolchains` or `view_paths`.",
    "other homes",
)
NO_SYSTEMCTL = Difference(
    "`systemctl`, `journalctl` and everything else that uses the system's bus fail",
    "The bus starts programs as root for whoever may ask. A session sees neither bus nor journal.",
    "Start the service as a plain process, or start it outside.",
    "systemctl",
)
GIT_CONFIG = Difference(
    "`.git/config` and `.git/hooks` are read-only: `git config`, `remote add`, `branch -m`, `sparse-checkout`, `submodule add` and `update`, `worktree remove` of one that you made, and `push -u` fail or do half",
    "Both name programs that git runs as you, outside, the next time that you type `git`.",
    "Run the command outside, use `git -c NAME=VALUE` inside, go to a submodule's commit by `git -C SUBMODULE checkout COMMIT`, or take them out of `projects.protect`.",
    "`.git/config`",
)
READ_ONLY_TOOLCHAINS = Difference(
    "Version managers in your home cannot install or remove versions: `pyenv install`, `rustup update`, `sdk install`, `nvm install` fail",
    "Toolchains are read-only. You run them outside, too, and an agent could put anything into them.",
    "Run the manager outside. Packages of an environment can be changed inside, until the session ends. Put what should stay into the project (`.venv`).",
    "Toolchains of the user's, read-only",
)
GIT_GARBAGE = Difference(
    "`git count-objects -v` calls `.git/config`, `.git/hooks` and others garbage",
    "A file `.git/commondir` that names its own directory keeps the agent from making one that names another. Git takes it for the mark of a worktree.",
    "Ignore these lines. Git removes nothing, and the file goes with the session.",
    "calls these garbage",
)
GIT_OUTSIDE_WAITS = Difference(
    "Outside, while a session works in the repository, git cannot write `.git/config`: \"Device or resource busy\"",
    "Git replaces the file. The new file would be unprotected inside, and nobody would notice.",
    "Do it when the session has ended, or edit the file in place.",
)
VARIABLES = Difference(
    "Your shell's variables are missing, except those for language and terminal, for places that the session shows (`PATH`, `GIT_DIR`), and those that the policy lists",
    "A shell's environment often holds keys, and every command inside can read it.",
    "Put what the agent needs into `~/.pi/agent/env`, or have it listed in the policy's `env`.",
    "variables of the user",
)
ACCESS_LISTS = Difference(
    "Access lists show other accounts by their numbers. Before systemd 257, as on Debian 12, each is 4294967295, and such entries cannot be set or copied",
    "A session knows the names of two accounts, yours and the agent's, and before systemd 257 the numbers of no others.",
    "Set them outside. A default list of the directory also works inside.",
    "Access control lists",
)
SOCKET_LISTS = Difference(
    "`ss` says \"Cannot open netlink socket\", and shows less of each socket",
    "A session has netlink for addresses and routes alone. Its other protocols are parts of the kernel that only administrators need.",
    "Trust its list: it reads `/proc/net` instead. `netstat` shows the same without the message.",
)
NO_COUNTERS = Difference(
    "`perf` and other programs that count events of the processor fail",
    "`perf_event_open` is closed. It measures other programs and the kernel, and has had many security holes.",
    "Measure outside, or use `callgrind`, `gprof` or `time`.",
    "`perf`",
)
DOTFILES = Difference(
    "Settings in your home (`~/.bashrc`, `~/.profile`, `~/.vimrc`) have no effect",
    "A session has the agent's own home. Yours also holds keys, histories and mail.",
    "Write the same file in a session once: the agent's home is kept. Or keep it in the project.",
    "dotfiles",
)
GIT_PROGRAMS = Difference(
    "Programs that your own git settings name do not run: filters other than LFS, aliases with `!`, diff and merge drivers",
    "They are in your home, or are shell lines of yours. A session sees neither, and runs nothing that it is not shown.",
    "Set them in the repository from outside (`git config filter.NAME.clean …`), with a program that the session has.",
    "git settings nothing that starts a program",
)
UNSIGNED = Difference(
    "Commits and tags are not signed, whatever the repository's or your settings say",
    "A session has no key of yours: whoever holds one can sign anything in your name.",
    "Ask for a key of the agent's in the policy (`users.NAME.signing`), or sign outside before you push: `git rebase --exec 'git commit --amend --no-edit --gpg-sign' UPSTREAM`.",
    "not signed",
)
NO_NAMESPACES = Difference(
    "Programs that build their own sandbox fail: `unshare`, `bwrap`, `podman`, chromium",
    "New namespaces open much of the kernel to whoever may make them.",
    "Run chromium, and what drives it, with `--no-sandbox`: the session is the sandbox. Run containers outside.",
    "makes namespaces",
)
NO_PERSONALITY = Difference(
    "`setarch` switches random addresses off (`-R`), and nothing else: `linux32` fails",
    "The same system call switches protections of programs off.",
    "Have the policy say `hardening: {allow_system_calls: [personality]}`.",
)
OLD_SESSIONS = Difference(
    "`pi -c` and `pi --resume` do not find the sessions of your own pi",
    "They hold what your pi read, in other places and of your variables too. Every command inside could read them.",
    "Start once with `pi --pi-agent-sessions`: it brings copies of the sessions of this directory in. Or have the policy say `config: {classes: {sessions: once}}`.",
)
SESSION_FILES = Difference(
    "`--session FILE` fails for a file outside of the project",
    "The agent would go on writing that file. Files that you name are handed over as read-only copies.",
    "Use `--fork FILE`, which goes on with a copy, or move the file into the project.",
)
NO_32_BIT = Difference(
    "32-bit programs end with SIGSYS (`GOARCH=386 go run`, vendors' toolchains, wine)",
    "Some of their system calls hide arguments in memory, where no filter can judge them.",
    "Use 64-bit programs, or run these outside.",
    "32-bit programs",
)
NO_SERVICE_ACCOUNTS = Difference(
    "Accounts of services, such as `postgres` and `www-data`, do not exist: `pg_virtualenv` and `install -o www-data` fail",
    "`/etc/passwd` is written for the session: root, nobody, the agent and you.",
    "Start a database with `initdb` and `pg_ctl` in a directory of the project.",
)
BREEZY_LIMBO = Difference(
    "`brz merge`, `update` and `revert` of Breezy fail where files come (`Invalid cross-device link`)",
    "Breezy moves new files out of `.bzr`, which is a mount: its settings name programs.",
    "Run the command outside, or take `.bzr` out of `projects.protect`.",
)
NO_CLONE3 = Difference(
    "On Debian 13 `errno` may be ENOSYS after `system()` and `posix_spawn()`, although the program ran: `os.execute` of Lua tells that error in place of a status other than 0",
    "`clone3` is denied, since no filter can read its flags. The C library then calls `clone`, and leaves the error in `errno`.",
    "Take the status from `io.popen(…):close()`.",
)
