# Keys of the policy about what a session may do and take: network, limits, system calls.
[
  {
    option = "network";
    key = "network";
    type = { oneOf = [ "full" "loopback" "none" ]; orList = true; orHosts = true; };
    default = "full";
    example = { hosts = [ "github.com" "*.example.org" "github.com:22" ]; };
    description = ''
      What a session reaches. `full`: all that the host reaches. `loopback`: the host's loopback alone. `none`: nothing but a loopback of
      its own. A list: exactly these ranges of addresses. A set: the `hosts` that it names, and those that a user may add for one session
      (`may_grant`), as in the policy (docs/concepts/network.md).
    '';
  }
  {
    option = "providers";
    key = "providers";
    type = "providers";
    default = { };
    example = { anthropic.key_file = "/run/secrets/anthropic.key"; };
    description = ''
      Providers of models whose keys no session has: a process outside puts them into the agent's requests. Each has a `key_file` that only
      root can read and, where the provider has several, a `host` (docs/concepts/keys.md). Only with hosts in `network`.
    '';
  }
  {
    option = "scratch";
    key = "scratch";
    type.oneOf = [ "disk" "tmpfs" ];
    default = "disk";
    example = "tmpfs";
    description = "Where the temporary directory of a session is: on disk, or in memory.";
  }
  {
    option = "placement.engine";
    key = "placement.engine";
    type.oneOf = [ "none" "slurm" ];
    default = "none";
    example = "slurm";
    description = ''
      `none`: sessions run on the host where `pi` is typed. `slurm`: they run on a node of its Slurm cluster, in a job of their own, and no
      session starts outside of a job (docs/platforms/slurm.md).
    '';
  }
  {
    option = "placement.srun";
    key = "placement.srun";
    type = "text";
    default = "/usr/bin/srun";
    example = "/run/current-system/sw/bin/srun";
    description = "Absolute path of the program that asks for a job.";
  }
  {
    option = "placement.partition";
    key = "placement.partition";
    type = "text";
    default = null;
    example = "interactive";
    description = "The partition of the job. Without it, the cluster's default.";
  }
  {
    option = "placement.account";
    key = "placement.account";
    type = "text";
    default = null;
    example = "research";
    description = "The account that the job is charged to. Without it, the user's default.";
  }
  {
    option = "placement.qos";
    key = "placement.qos";
    type = "text";
    default = null;
    example = "interactive";
    description = "The quality of service of the job. Without it, the cluster's default.";
  }
  {
    option = "placement.constraint";
    key = "placement.constraint";
    type = "text";
    default = null;
    example = "agents&ssd";
    description = "Features that the node must have. Without it, any node will do.";
  }
  {
    option = "limits.memory";
    key = "limits.memory";
    type = "text";
    default = "80%";
    example = "8G";
    description = "Memory of a session: a number with K, M, G or T, powers of 1024, or a share of the host's. At least 128M.";
  }
  {
    option = "limits.tasks";
    key = "limits.tasks";
    type = "count";
    default = 4096;
    example = 2000;
    description = "Processes and threads of a session, 32 to 4194304.";
  }
  {
    option = "limits.cpu";
    key = "limits.cpu";
    type = "text";
    default = null;
    example = "400%";
    description = "Percent of one processor: 400% is four. Without it there is no limit.";
  }
  {
    option = "limits.runtime";
    key = "limits.runtime";
    type = "text";
    default = null;
    example = "12h";
    description = "How long a session may last, 10s to 365d. Without it there is no limit.";
  }
  {
    option = "limits.sessions";
    key = "limits.sessions";
    type = "count";
    default = 8;
    example = 2;
    description = "Sessions that one user may have at once, 1 to 64.";
  }
  {
    option = "limits.disk";
    key = "limits.disk";
    type = "text";
    default = null;
    example = "10G";
    description = ''
      Disk space of one user's agent, its home and the temporary files of its sessions together: a number with K, M, G or T, powers of
      1024, at least 64M. A project quota of the file system holds the agent to it (ext4, XFS). Without it there is no limit.
    '';
  }
  {
    option = "limits.diskWithoutQuota";
    key = "limits.disk_without_quota";
    type.oneOf = [ "tell" "refuse" ];
    default = "tell";
    example = "refuse";
    description = ''
      What a start does where no quota can hold the agent to `limits.disk`. `tell`: it says so, and goes on. `refuse`: no session
      starts.
    '';
  }
  {
    option = "hardening.denySystemCalls";
    key = "hardening.deny_system_calls";
    type = "list";
    default = [ ];
    example = [ "@memlock" "memfd_create" ];
    description = ''
      System calls that fail in sessions (EPERM), besides those that always do: names, and groups of systemd's such as `@memlock`
      (docs/reference/session-calls.md).
    '';
  }
  {
    option = "hardening.allowSystemCalls";
    key = "hardening.allow_system_calls";
    type = "list";
    default = [ ];
    example = [ "personality" ];
    description = ''
      System calls that work in sessions though they fail otherwise: some of `mincore`, `name_to_handle_at`, `personality`,
      `pkey_alloc`, `pkey_free`, `pkey_mprotect`.
    '';
  }
  {
    option = "hardening.tracing";
    key = "hardening.tracing";
    type.oneOf = [ "auto" "always" "never" ];
    default = "auto";
    example = "never";
    description = ''
      Whether debuggers (gdb, strace, LeakSanitizer) work in a session, on its own processes alone. `auto`: where Landlock or process
      numbers of its own keep them there.
    '';
  }
  {
    option = "hardening.addressFamilies";
    key = "hardening.address_families";
    type = "list";
    default = [ "unix" "inet" "inet6" "netlink" ];
    example = [ "unix" "inet" ];
    description = ''
      Kinds of sockets that sessions may make: some of `unix`, `inet`, `inet6`, `netlink`. Without `netlink`, programs cannot ask for
      interfaces and routes.
    '';
  }
]
