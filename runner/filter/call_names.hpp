// The system calls that a session may make where no systemd filters them, and how root's differ. They are those of @system-service
// (systemd.exec(5), systemd-analyze(1) syscall-filter, as of 257) for 64-bit architectures, without what is denied, and without what
// runner/filter/call_rules.cpp judges by its arguments.
#pragma once

#include <string_view>

namespace pi_agent {

// One name a line would be 300 of them.
// clang-format off
constexpr const char *allowed_calls[] = {
    "accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "capget", "capset", "chdir", "chmod", "chown",
    "clock_getres", "clock_gettime", "clock_nanosleep", "close", "close_range", "connect", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
    "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "file_getattr", "file_setattr", "flistxattr",
    "flock", "fork", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex", "futex_waitv", "futimesat",
    "get_mempolicy", "get_robust_list", "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid", "geteuid",
    "getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
    "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid",
    "getxattr", "getxattrat", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy",
    "io_getevents", "io_pgetevents", "io_setup", "io_submit", "ioctl", "ioprio_get", "ioprio_set", "kill", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link", "linkat", "listen", "listmount",
    "listxattr", "listxattrat", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lsm_get_self_attr", "lsm_list_modules",
    "lstat", "madvise", "mbind", "membarrier", "memfd_create", "migrate_pages", "mkdir", "mkdirat", "mknod", "mknodat", "mlock",
    "mlock2", "mlockall", "mmap", "move_pages", "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive",
    "mq_timedsend", "mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock", "munlockall",
    "munmap", "nanosleep", "newfstatat", "open", "openat", "pause", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "poll",
    "ppoll", "prctl", "pread64", "preadv", "preadv2", "prlimit64", "process_madvise", "pselect6", "pwrite64", "pwritev", "pwritev2",
    "read", "readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg", "remap_file_pages", "removexattr",
    "removexattrat", "rename", "renameat", "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_yield", "seccomp",
    "select", "semctl", "semget", "semop", "semtimedop", "sendfile", "sendmmsg", "sendmsg", "sendto", "set_mempolicy",
    "set_mempolicy_home_node", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid", "setgid",
    "setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setsockopt", "setuid", "setxattr", "setxattrat", "shmat", "shmctl", "shmdt", "shmget", "shutdown", "sigaltstack", "signalfd",
    "signalfd4", "socketpair", "splice", "stat", "statfs", "statmount", "statx", "symlink", "symlinkat", "sync", "sync_file_range",
    "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime", "times", "tkill", "truncate", "umask", "uname",
    "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork", "vmsplice", "wait4", "waitid", "write", "writev",
};

// ... of which root's processes make none once their session is prepared: they start no program, make no device, extended attribute or
// server, change no other process' scheduling, and read no tty.
constexpr std::string_view withheld_from_root[] = {
    "accept", "accept4", "execve", "execveat", "fremovexattr", "fsetxattr", "io_submit", "ioctl", "ioprio_set", "listen",
    "lremovexattr", "lsetxattr", "migrate_pages", "mknod", "mknodat", "move_pages", "removexattr", "removexattrat",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_madvise", "sched_setattr", "sched_setparam", "sched_setscheduler", "setxattr",
    "setxattrat",
};

// ... and what the removal of a session needs besides: its mounts, and openat2(2) for paths that lead nowhere else.
constexpr const char *root_calls[] = {"umount2", "openat2"};

// What a process needs that only changes modes of directories which it is handed (runner/as_agent/home.hpp); the rest is for the
// C library.
constexpr const char *mode_calls[] = {
    "recvmsg", "sendmsg", "poll", "ppoll", "fstat", "newfstatat", "chmod", "fchmodat", "close", "exit", "exit_group", "clock_gettime",
    "brk", "mmap", "munmap", "mremap", "madvise", "futex", "rt_sigreturn", "restart_syscall",
};

// What the gate of a session needs (gate/) once it has its order and its threads: connections, and what the C library does for the
// resolver, which reads files of /etc and may load modules. It starts nothing, writes no file, and reaches no other process.
constexpr const char *gate_calls[] = {
    "accept", "accept4", "bind", "brk", "clock_gettime", "clock_nanosleep", "close", "connect", "dup", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait",
    "eventfd2", "exit", "exit_group", "faccessat", "faccessat2", "fcntl", "fstat", "futex", "getdents64", "getegid", "geteuid", "getgid", "getpeername",
    "getpid", "getrandom", "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "lseek", "madvise", "mremap", "munmap",
    "nanosleep", "newfstatat", "poll", "ppoll", "pread64", "prlimit64", "read", "readlink", "readv", "recvfrom", "recvmmsg", "recvmsg",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield", "sendmmsg", "sendmsg", "sendto", "set_robust_list",
    "setsockopt", "shutdown", "stat", "statx", "statfs", "sysinfo", "tgkill", "timerfd_create", "timerfd_settime", "uname", "write", "writev",
};

// What no session calls, whatever the policy says; name_to_handle_at(2) is in common/policy/policy_paths.hpp. These go around other
// restrictions (io_uring, io_uring-made sockets and files), into other processes, keyrings and file handles, or out of the view.
constexpr const char *denied_calls[] = {
    "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "pidfd_getfd", "add_key", "request_key", "keyctl",
    "open_by_handle_at", "bpf", "perf_event_open", "mount", "umount2", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "pivot_root", "chroot", "unshare", "setns", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
    "quotactl", "quotactl_fd", "swapon", "swapoff", "reboot", "acct", "settimeofday", "clock_settime", "clock_adjtime",
    "adjtimex",
};

// What debuggers make. The kernel lets a process reach another one of its account with them, so a session makes them only where it is kept
// from all processes but its own (docs/decisions/0034-debuggers.md).
constexpr const char *trace_calls[] = {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"};
// clang-format on

} // namespace pi_agent
