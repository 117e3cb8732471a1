"""The house rules as data: what is allowed where. The checks that apply them are in lint.py."""

import re

# One dangerous thing, one home: (name, pattern, files that may use it, why). The room of a file (rooms.py) needs the power first: a new home in
# another room is a change of both tables.
# Only the product's own directories are held to it; tests may do what an attacker does.
# A home that does not exist, or does not use what it is listed for, is a finding too: a permission nobody needs is a hole.
PRODUCT_DIRECTORIES = ("common", "wrapper", "runner", "fetch", "gate", "admin")


def _include(header):
    return re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?:[\w+./-]*/)?' + header, re.MULTILINE)


def _call(*names):
    """Names that are ordinary words too: only a call, or the number of the system call, counts."""
    joined = "|".join(names)
    return re.compile(r"(?<![\w.:])(?<!->)(?:(?:std\s*)?::\s*)?(?:" + joined + r")\s*\(|\b(?:SYS_|__NR_)(?:" + joined + r")\b")


def _name(*names):
    """Names that mean nothing but the system call: any mention counts, except a rule of the seccomp filter about it."""
    return re.compile(r"(?<!SCMP_SYS\()\b(?:SYS_|__NR_)?(?:" + "|".join(names) + r")\b")


HOMES = (
    ("yaml-cpp", _include(r"yaml-cpp/"), ("common/policy/yaml/yaml_tree.cpp", "admin/render/render_kubernetes.cpp"),
     "lookups are lenient about duplicate keys and types; one file makes them strict and knows its messages, one only writes"),
    ("sdbus-c++", _include(r"(?:sdbus-c\+\+/|systemd/sd-bus)"), ("runner/root/method/systemd_bus.cpp",),
     "the one file that talks to the bus enforces the alphabet of unit properties"),
    ("libseccomp", _include(r"seccomp\.h"), ("runner/filter/make_call_filters.cpp", "runner/filter/seccomp_filter.cpp", "runner/inside/agent_calls.cpp",
     "runner/inside/call_answers.cpp"),
     "the filter is one list that can be read in one place; one file makes programs of it, one adds what a policy says, one installs them, one answers what it asks"),
    ("libcurl", _include(r"curl/curl\.h"), ("fetch/pi_agent_fetch.cpp",), "one file says which protocols, certificates and limits a download has"),
    ("libcrypto", _include(r"openssl/"), ("admin/host/package_files.cpp", "fetch/pi_agent_fetch.cpp", "gate/above.cpp"),
     "a check sum is of the bytes that are written, so both are in one file; another one says whom TLS trusts"),
    ("Landlock", _name(r"landlock_(?:create_ruleset|add_rule|restrict_self)"), ("runner/inside/landlock.cpp",),
     "the kernel interface has versions; one file knows them, and the unit's filter lets them through"),
    ("bpf(2)", _include(r"linux/bpf\.h"), ("runner/root/kernel/host_facts.cpp", "runner/root/method/gate_sockets.cpp"),
     "one file only asks what is attached; one loads the program that leads a session's connections to its gate; others are systemd's"),
    ("changing identity", _name(r"set(?:e|re|res|fs)?[ug]id", "setgroups", "initgroups"), ("common/host/identity.cpp",),
     "becoming a user checks every id and tries to regain; nobody may do half of it"),
    ("capabilities", _call("capset", "cap_set_proc"), ("common/host/identity.cpp", "runner/root/confined/root_confinement.cpp"),
     "what is given up is looked at and tried to take back; nobody may do half of it"),
    ("mounting", _name("umount2?", "move_mount", "open_tree", "mount_setattr", "fsopen", "fsmount", "fsconfig", "fspick",
                       "pivot_root"), ("runner/root/mount/mounts.cpp",),
     "a clone is made private and id-mapped before it is attached, nobody may attach another way; a last function only asks whether these calls may be made"),
    ("mount(2)", _call("mount", "chroot"), ("runner/root/mount/mounts.cpp",),
     "as for mounting; the word is too common to forbid without its bracket"),
    ("namespaces", _call("setns", "unshare"), ("runner/inside/canary.cpp", "runner/root/mount/mounts.cpp"),
     "everything of ours stays in the namespaces that it was started in, but for one thread that mounts what nobody is to see, and the child that asks git (clone)"),
    ("new processes", _call("fork", "vfork", "clone", "clone3", "posix_spawnp?"),
    ("wrapper/aftermath.cpp", "wrapper/carrier.cpp", "wrapper/main.cpp", "common/ask/runner_process.cpp", "runner/root/method/sandbox_bwrap.cpp",
      "runner/inside/canary.cpp", "runner/root/errand/child.cpp",
      "runner/as_agent/tasks.cpp", "runner/inside/agent_process.cpp", "runner/as_user/git_identity.cpp", "runner/root/mount/mounts.cpp",
      "admin/programs/program.cpp", "fetch/pi_agent_fetch.cpp"),
     "a child needs its deadline, its limits and its closed descriptors"),
    ("other programs", _name("execve?", "execvpe?", "execl[pe]?", "execveat", "fexecve"),
     ("common/ask/runner_process.cpp", "wrapper/carrier.cpp", "wrapper/main.cpp", "wrapper/node_side.cpp", "runner/inside/agent_process.cpp", "runner/root/method/sandbox_bwrap.cpp", "runner/as_agent/tasks.cpp", "runner/as_user/git_identity.cpp",
      "runner/pi_agent_engine.cpp", "admin/sessions/sessions.cpp"),
     "argv and environment of another program are built where they can be read"),
)

# What a room that makes no system call does not call, beside the dangerous things above: names of the C library, and what C++ has in their place.
_CALLS = "|".join(r"""
open openat openat2 open_by_handle_at creat close close_range dup dup2 dup3 fcntl ioctl flock lockf fsync fdatasync sync syncfs
read pread readv preadv write pwrite writev pwritev sendfile splice copy_file_range lseek truncate ftruncate fallocate posix_fallocate
stat lstat fstat fstatat statx statfs fstatfs statvfs fstatvfs access faccessat euidaccess eaccess readlink readlinkat realpath
opendir fdopendir readdir scandir nftw ftw fts_open glob getcwd get_current_dir_name chdir fchdir
unlink unlinkat rmdir mkdir mkdirat mkdtemp mkstemp mkostemp mkfifo mkfifoat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat
chmod fchmod fchmodat chown fchown lchown fchownat utimensat futimens utime utimes umask
l?f?getxattr l?f?setxattr l?f?listxattr l?f?removexattr name_to_handle_at
socket socketpair connect bind listen accept accept4 shutdown getsockopt setsockopt getpeername getsockname getaddrinfo
send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg poll ppoll select pselect epoll_\w+
wait waitpid waitid wait3 wait4 kill killpg tgkill raise pidfd_\w+ ptrace process_vm_\w+ _exit quick_exit
signal sigaction sigprocmask pthread_\w+ sigqueue sigwait\w* signalfd
prctl arch_prctl syscall personality seccomp bpf perf_event_open keyctl add_key request_key
open_at open_or_throw open_resolved make_pipe examine read_link mmap munmap mremap mprotect madvise mlock mlockall shm_open memfd_create pipe pipe2 eventfd timerfd_\w+ inotify_\w+ fanotify_\w+ io_uring_\w+
getuid geteuid getgid getegid getresuid getresgid getgroups getpid getppid gettid getpgid getpgrp getsid setsid setpgid
getpw(?:nam|uid|ent)(?:_r)? getgr(?:nam|gid|ent)(?:_r)? getgrouplist getlogin(?:_r)? cap_get_\w+ capget
uname gethostname getdomainname sethostname sysconf pathconf fpathconf sysinfo getrlimit setrlimit prlimit getrusage getrandom getentropy
sched_\w+ getpriority setpriority nice time clock clock_\w+ gettimeofday nanosleep sleep usleep alarm
getenv secure_getenv setenv unsetenv putenv clearenv
isatty ttyname(?:_r)? ptsname(?:_r)? posix_openpt openpty tcgetattr tcsetattr tcgetpgrp tcsetpgrp
fopen fdopen freopen fread fwrite fgets fgetc fputs fputc puts putchar getdelim printf vprintf fprintf vfprintf dprintf perror tmpfile
syslog openlog sd_\w+ dlopen
""".split())
SYSTEM_CALLS = re.compile(
    r"(?<![\w.:])(?<!->)(?:(?:std\s*)?::\s*)?(?P<call>" + _CALLS + r")\s*\("
    r"|(?<![\w:>])::\s*(?P<name>" + _CALLS + r")\b"
    r"|\b(?:SYS_|__NR_)(?P<number>[a-z]\w*)"
    r"|\bstd\s*::\s*(?P<library>(?:basic_)?[io]?fstream|filesystem|cout|cerr|clog|cin|j?thread|async|this_thread|random_device)\b"
    r"|\b(?P<clock>(?:system|steady|high_resolution)_clock\s*::\s*now)\b"
    r"|(?<!\w)(?P<fmt>fmt\s*::\s*print(?:ln)?)\b")
# Files of such rooms that make some all the same: which, and why.
SILENT_BUT = {
    "runner/filter/make_call_filters.cpp": (("write", "memfd_create", "lseek", "printf", "read", "fprintf"), "it runs while the product is built, and nowhere else"),
    "runner/filter/seccomp_filter.cpp": (("syscall", "seccomp", "prctl"), "it installs the filters"),
}
# What such a room does not include either, because what it would call there makes them: whole rooms, and files of others. A channel that it is handed
# is for wire/ to speak through.
CALLS_BEHIND = re.compile(r"common/(?:host|decide|as_user|record)/(?!account\.hpp)|common/policy/policy_(?:load|sources)\.hpp"
                          r"|common/base/files\.hpp")

# The type by which code says that it is root.
AS_ROOT = re.compile(r"\bAsRoot\b")

# Never, in any C++ file: (name, pattern, what to do instead).
FORBIDDEN_IN_CPP = (
    ("shell", _call("system", "popen"), "start the program itself with an argument vector; a shell interprets what a user named"),
    ("new headers", re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(?:format|expected|source_location|print)>", re.MULTILINE),
     "g++ 12 or clang 14 lacks it; use fmt, std::variant or an exception"),
    ("silent skip", re.compile(r"(?<![\w])MESSAGE\s*\("),
     "nobody reads a message of a case that passed; one that cannot test here calls skipped() of tests/unit/support/skipped.hpp"),
)

# Never, in any text file. Written so that this file does not match itself.
FORBIDDEN_WORDS = (
    ("unfinished", re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b"), "finish it, or write an issue and say in the documentation what is missing"),
    ("machine path", re.compile(r"(?<![\w.}])/wo" r"rk/"), "a path of one developer's machine; use a path relative to the source"),
    ("registry host", re.compile(r"\bregistry\.[a-z0-9-]+\.[a-z]{2,}\b|\b(?:pypi|npmjs|crates|rubygems)\.(?:org|com|io)\b"),
     "which package registry is used is the administrator's choice; name the tool, not the host"),
)

# A function that is given to a Child (runner/root/errand/errand.hpp) or to ask() (errand.hpp), by its signature; one that is no member; and a point
# at which faults are tried. ask() itself hands on what it is given: that is looked at where it is written.
CHILD_TASK = re.compile(r"\]\s*\(\s*const AsUser &[^,()]*(?:,\s*FdRef[^,()]*)?\)\s*(?:mutable\s*)?\{")
HANDS_TASKS_ON = "runner/root/errand/errand.hpp"
FUNCTION = re.compile(r"^[\w:<>,&* ]*?(?<![\w:])(\w+)\([^{};]*\)\s*(?:const\s*)?(?:noexcept\s*)?\{", re.MULTILINE)
FAULT_POINT = re.compile(r"\bfault_point\s*\(")

# A command with its arguments, in what a message says. Somebody will paste it as root, so common/host/beneath.hpp decides whether it may be said: it
# stands nowhere but as the first argument of command_on(), which adds the path. Units that we write are documents, no messages.
COMMAND = re.compile(
    r"(?<!ExecStart=)(?<!ExecStop=)(?<![\w./-])(?:/(?:usr/)?s?bin/)?"
    r"(?P<name>ch(?:mod|own|grp|attr|age|sh)|setfacl|rm|rmdir|mv|ln|cp|dd|mkdir|truncate|install|kill|pkill|umount|mount|mkfs\S*|user(?:mod|add|del)"
    r"|group(?:mod|add|del)|gpasswd|passwd|crontab|loginctl|semanage|restorecon)\s+(?P<arguments>[-+./~0-7a-z{$][^;,()\n]*)")
COMMANDS_THAT_ARE_WORDS = {"install", "kill", "mount", "passwd", "truncate"}  # only with an option
BEFORE_COMMAND = re.compile(r"\bcommand_on\(\s*(?:std::string\(\s*)?$")

# A test that a page names: `test_file::test_name`, with a case in brackets or without; `system/` or `container/` before it where it is to be
# looked for there alone. Of the unit tests: `unit/file_test::the sentence of the case`.
NAMED_TEST = re.compile(r"`(?:(attack|system|container|unit)/)?(test_\w+|\w+_test)::([^`\[]+)(?:\[[^`]*\])?`")
PYTHON_TEST = re.compile(r"^[ \t]*def (test_\w+)\(", re.MULTILINE)
UNIT_TEST = re.compile(r'^[ \t]*TEST_CASE\("((?:\\.|[^"\\\n])*)"', re.MULTILINE)

# A link or picture of a page to something in this project.
LINK = re.compile(r"\[[^\[\]]*\]\((?![a-z]+:)([^()\s]+)\)")

MAX_LINES = 450
MAX_LINES_TESTS = 500
# Commands without a suffix (try, install-host-packages) are named as users type them.
FILE_NAME = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*")
MIN_PURPOSE_LENGTH = 20  # characters; "// utils" is not a purpose

# A source that a comment names; those that the build makes are in no directory of ours.
NAMED_SOURCE = re.compile(r"(?<![\w/.<-])((?:\w+/)*\w+\.[ch]pp)\b")
MADE_SOURCES = {"test_seams.hpp", "build_config.hpp"}
