"""Becomes what docker starts in a container with --cap-add SYS_ADMIN, and then its arguments. Runs in the machine, as root.

    contained.py first COMMAND...     the first process: also makes read-only what docker does
    contained.py COMMAND...           a further one, as `docker exec` starts it

The capabilities are docker's default and one more; the calls are those of its default profile with that capability (its documentation,
"Seccomp security profiles for Docker"), before Landlock came to it: every other call answers EPERM. PI_AGENT_TEST_CAPABILITIES, …_CALLS
and …_WITHOUT_CAPABILITIES, …_WITHOUT_CALLS change the lists. Without SYS_ADMIN, clone makes no namespaces, as in docker's default.
"""

import ctypes
import os
import subprocess
import sys

# Numbers of <linux/capability.h>.
CAPABILITIES = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7, "setpcap": 8, "net_bind_service": 10,
    "net_raw": 13, "sys_chroot": 18, "sys_admin": 21, "mknod": 27, "audit_write": 29, "setfcap": 31,
}  # fmt: skip
MORE_CAPABILITIES = {"net_admin": 12, "sys_ptrace": 19, "sys_nice": 23, "sys_resource": 24}
CALLS = """
accept accept4 access adjtimex alarm arch_prctl bind brk capget capset chdir chmod chown clock_adjtime clock_getres clock_gettime clock_nanosleep
close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd
eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchown fchownat fcntl
fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futimesat get_robust_list get_thread_area
getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom
getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit io_uring_enter io_uring_register io_uring_setup
ioctl ioprio_get ioprio_set kill lchown lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier
memfd_create mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive
mq_timedsend mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause
pidfd_open pidfd_send_signal pipe pipe2 poll ppoll prctl pread64 preadv preadv2 prlimit64 process_vm_readv process_vm_writev pselect6 ptrace
pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2
restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg
sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid
setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs
statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid
write writev
""".split()
CALLS_OF = {
    "sys_admin": """bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr move_mount name_to_handle_at
        open_tree perf_event_open quotactl setdomainname sethostname setns syslog umount2 unshare""".split(),
    "sys_chroot": ["chroot"],
    "sys_ptrace": ["kcmp", "pidfd_getfd", "process_madvise"],
    "sys_nice": ["get_mempolicy", "mbind", "set_mempolicy"],
}
FCHMODAT2 = 452  # newer than the profile, and than some libseccomp's names; runc answers ENOSYS, and libc goes on with others
PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
AF_VSOCK = 40
EPERM = 1
ENOSYS = 38
ALLOW, ERRNO = 0x7FFF0000, 0x00050000  # SCMP_ACT_*
NOT_EQUAL, EQUAL, MASKED_EQUAL = 1, 4, 7  # SCMP_CMP_*
NEW_NAMESPACES = 0x7E020000  # the flags of clone(2) that docker refuses without SYS_ADMIN
NO_NEW_PRIVILEGES = 3  # SCMP_FLTATR_CTL_NNP
CAPBSET_DROP = 24
# systemd-nspawn has made /proc/sys and its like read-only.
MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list")


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


def checked(result, what):
    if result != 0:
        sys.exit(f"contained.py: {what}: {result}, errno {ctypes.get_errno()}")


def make_read_only():
    subprocess.run(["mount", "-o", "remount,bind,ro", "/sys/fs/cgroup"], check=True)
    for path in filter(os.path.exists, MASKED):
        subprocess.run(["mount", "--bind", "/dev/null", path], check=True)


def load_filter(calls):
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    rules = ctypes.c_void_p(library.seccomp_init(ERRNO | EPERM))
    checked(library.seccomp_attr_set(rules, NO_NEW_PRIVILEGES, 0), "asking for no no_new_privs")

    def rule(name, *comparisons, action=ALLOW):
        number = name if isinstance(name, int) else library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            sys.exit(f"contained.py: libseccomp does not know {name}")
        array = (Comparison * len(comparisons))(*comparisons)
        checked(library.seccomp_rule_add_array(rules, action, number, len(comparisons), array), f"allowing {name}")

    for name in calls:
        rule(name)
    if "clone" not in calls:
        rule("clone", Comparison(0, MASKED_EQUAL, NEW_NAMESPACES, 0))
        rule("clone3", action=ERRNO | ENOSYS)  # its flags are in memory, where no filter looks; libc goes on with clone
    rule(FCHMODAT2, action=ERRNO | ENOSYS)
    rule("socket", Comparison(0, NOT_EQUAL, AF_VSOCK, 0))
    for kind in PERSONALITIES:
        rule("personality", Comparison(0, EQUAL, kind, 0))
    checked(library.seccomp_load(rules), "loading the filter")


def drop_capabilities(kept):
    library = ctypes.CDLL(None, use_errno=True)
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as last:
        for number in range(int(last.read()) + 1):
            if number not in kept:
                checked(library.prctl(CAPBSET_DROP, number, 0, 0, 0), f"dropping capability {number}")
    # Programs that root starts have what is in the bounding set; of this one nothing else is left then.
    bits = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    words = (ctypes.c_uint32 * 6)(bits & 0xFFFFFFFF, bits & 0xFFFFFFFF, 0, bits >> 32, bits >> 32, 0)
    checked(library.syscall(126, header, words), "dropping capabilities")  # capset(2)


def told(name):
    return os.environ.pop(f"PI_AGENT_TEST_{name}", "").split()


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "first":
        del arguments[0]
        make_read_only()
    with open("/proc/1/oom_score_adj", encoding="ascii") as first, open("/proc/self/oom_score_adj", "w", encoding="ascii") as own:
        own.write(first.read())  # which is from now on the lowest that it may have
    capabilities = CAPABILITIES | {name: MORE_CAPABILITIES[name] for name in told("CAPABILITIES")}
    for name in told("WITHOUT_CAPABILITIES"):
        del capabilities[name]
    calls = {*CALLS, *(name for capability in capabilities for name in CALLS_OF.get(capability, ())), *told("CALLS")} - {*told("WITHOUT_CALLS")}
    load_filter(calls)
    drop_capabilities(set(capabilities.values()))
    os.execvp(arguments[0], arguments)


main()
