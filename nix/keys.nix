# The options that are keys of the policy, one entry each: options.nix declares them, and policy.nix writes the policy from them.
#
#   option       the option, below m3ta.pi-agent (for `users`: below hostUsers.NAME)
#   key          the key of the policy, as in docs/policy.md (for `users`: below users.NAME)
#   type         a word of `typeOf` in options.nix, or { oneOf = [ … ]; }, with `orList = true` where a list may stand in its place
#   default      as in the policy; null where nothing holds unless it is said. What equals its default is left out of the policy.
#
# tests/nix holds all of this against `pi-agentctl schema`, so that a key that the policy gets is missed here.
{
  policy = [
    {
      option = "user";
      key = "agent.user";
      type = "text";
      default = "pi-agent";
      example = "coder";
      description = "The account that agents run as; with `accounts = \"per-user\"` the beginning of each account's name: pi-agent-alice.";
    }
    {
      option = "group";
      key = "agent.group";
      type = "text";
      default = "pi-agent";
      example = "coders";
      description = "The group of the agents' accounts. No people are in it.";
    }
    {
      option = "accounts";
      key = "agent.accounts";
      type.oneOf = [ "shared" "per-user" ];
      default = null;
      example = "per-user";
      description = ''
        Whether every user's agent has an account of its own, or all share one and can reach each other's state. To be said wherever more
        than one user is possible; a single user has `user`.
      '';
    }
    {
      option = "stateDir";
      key = "agent.state_dir";
      type = "text";
      default = "/var/lib/pi-agent";
      example = "/var/lib/pi-agent";
      description = "Where the homes of agents lie. Another value is not supported yet, and refused when the system is built.";
    }
    {
      option = "wrapper.enable";
      key = "wrapper.enable";
      type = "bool";
      default = true;
      example = false;
      description = ''
        Whether the agent can be started. `false` is the emergency stop: no sudo rule, `pi` says why, and sessions that live are ended when
        the system is switched.
      '';
    }
    {
      option = "sandbox.method";
      key = "sandbox.method";
      type.oneOf = [ "systemd" "bwrap" "none" ];
      default = "systemd";
      example = "bwrap";
      description = ''
        What confines the agent: a hardened unit of systemd, bubblewrap, or an account of its own and nothing else. No method is ever used in
        the place of another (docs/methods.md).
      '';
    }
    {
      option = "projects.paths";
      key = "projects.paths";
      type.oneOf = [ "host" "alias" ];
      default = "host";
      example = "alias";
      description = ''
        Where a project lies inside: at its path on the host, or below `~/projects` of the agent's home, without a trace of the user's.
      '';
    }
    {
      option = "projects.scope";
      key = "projects.scope";
      type.oneOf = [ "root" "project" ];
      default = "root";
      example = "project";
      description = "What is shown: the root that holds the working directory, or only the repository in it that does.";
    }
    {
      option = "projects.ownership";
      key = "projects.ownership";
      type.oneOf = [ "idmap" ];
      default = "idmap";
      example = "idmap";
      description = "How files that the agent makes come to belong to the user: by an id-mapped mount.";
    }
    {
      option = "projects.protect";
      key = "projects.protect";
      type = { oneOf = [ "default" ]; orList = true; };
      default = "default";
      example = [ ".git/hooks" "Makefile" ];
      description = ''
        What of a repository is read-only inside: what git executes (`"default"`), or these paths, relative to the repository. `[ ]` is nothing.
      '';
    }
    {
      option = "projects.mask";
      key = "projects.mask";
      type = "list";
      default = [ ];
      example = [ ".env*" "deploy/keys" ];
      description = "What cannot be read inside: patterns of names anywhere in the project, or with `/` of paths.";
    }
    {
      option = "projects.aftermath";
      key = "projects.aftermath";
      type = "bool";
      default = true;
      example = false;
      description = "Whether `pi` tells at the end what the session left that runs code outside.";
    }
    {
      option = "config.classes";
      key = "config.classes";
      type.valuesOf = [ "mirror" "seed" "agent" "never" ];
      default = { };
      example = { "extensions/experimental" = "never"; };
      description = ''
        Whose a path of the users' config directories is, with what lies beneath it: `mirror`, the user's, copied at every start; `seed`,
        copied once; `agent`, the agent's own; `never`, stays outside (docs/config-sync.md).
      '';
    }
    {
      option = "settings";
      key = "settings";
      type = "document";
      default = { };
      example = { defaultProvider = "local"; };
      description = "Merged over everybody's settings.json; what is written here wins.";
    }
    {
      option = "models";
      key = "models";
      type = "document";
      default = { };
      example = { providers = { }; };
      description = "Merged over everybody's models.json. Everybody on the host can read it: no keys here, but names of variables.";
    }
    {
      option = "keybindings";
      key = "keybindings";
      type = "document";
      default = { };
      example = { interrupt = "escape"; };
      description = "Merged over everybody's keybindings.json.";
    }
    {
      option = "mcp";
      key = "mcp";
      type = "document";
      default = { };
      example = { mcpServers = { }; };
      description = "Merged over everybody's mcp.json.";
    }
    {
      option = "settingsLock";
      key = "settings_lock";
      type = "bool";
      default = false;
      example = true;
      description = "Whether the agent's settings.json is read-only inside. `/settings` keeps nothing then.";
    }
    {
      option = "gitIdentity";
      key = "git_identity";
      type = "bool";
      default = true;
      example = false;
      description = "Whether the agent's commits carry the user's name and address.";
    }
    {
      option = "boxNotes";
      key = "box_notes";
      type = "bool";
      default = true;
      example = false;
      description = "Whether the agent is told about its sandbox.";
    }
    {
      option = "environment";
      key = "env";
      type = "variables";
      default = { };
      example = { PI_OFFLINE = "1"; };
      description = ''
        Variables for every agent, over the users' own. Everybody on the host can read the policy and the store: no secrets here, but in
        `environmentFiles`.
      '';
    }
    {
      option = "environmentFiles";
      key = "env_files";
      type = "list";
      default = [ ];
      example = [ "/run/secrets/pi.env" ];
      description = "Absolute paths, as text, of files with more variables for every agent, which only root can read: the place for secrets.";
    }
    {
      option = "hostEnvironmentFiles";
      key = "host_env_files";
      type = "list";
      default = [ ".pi/agent/env" ];
      example = [ ];
      description = "Files with variables of the users' own, below all that is managed: absolute, or relative to their homes.";
    }
    {
      option = "network";
      key = "network";
      type = { oneOf = [ "full" "loopback" "none" ]; orList = true; };
      default = "full";
      example = [ "127.0.0.0/8" "10.20.0.0/16" ];
      description = ''
        What a session reaches: all that the host does, the host's loopback alone, nothing but a loopback of its own, or exactly the ranges
        of addresses of a list (docs/network.md).
      '';
    }
    {
      option = "toolchains.readable";
      key = "toolchains.readable";
      type = { oneOf = [ "default" "best_effort" ]; orList = true; };
      default = "default";
      example = [ "default" "~/.sdkman" ];
      description = ''
        Directories of the users' homes with programs, read-only inside. With `best_effort`, also as a word of the list, what cannot be shown
        is left out.
      '';
    }
    {
      option = "toolchains.caches";
      key = "toolchains.caches";
      type = { oneOf = [ "default" "best_effort" ]; orList = true; };
      default = "default";
      example = [ ];
      description = "Directories of the users' homes with downloads; what a session changes in them ends with it. `best_effort` as for `readable`.";
    }
    {
      option = "view";
      key = "view";
      type.oneOf = [ "minimal" "host" ];
      default = "minimal";
      example = "host";
      description = "What sessions see of the host: programs and a little of /etc, or all of /etc that is readable. The store is in both.";
    }
    {
      option = "viewPaths";
      key = "view_paths";
      type = "list";
      default = [ ];
      example = [ "/srv/toolchains" ];
      description = "Absolute paths that are shown besides, read-only; only root may be able to write there.";
    }
    {
      option = "scratch";
      key = "scratch";
      type.oneOf = [ "disk" "tmpfs" ];
      default = "disk";
      example = "tmpfs";
      description = "Where the temporary directory of a session lies: on the disk, or in memory.";
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
      description = "Percent of one processor: 400% is four. No limit where it is not said.";
    }
    {
      option = "limits.runtime";
      key = "limits.runtime";
      type = "text";
      default = null;
      example = "12h";
      description = "How long a session may last, 10s to 365d. No limit where it is not said.";
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
      option = "hardening.denySystemCalls";
      key = "hardening.deny_system_calls";
      type = "list";
      default = [ ];
      example = [ "memfd_create" "mlockall" ];
      description = "System calls that fail in sessions (EPERM), beyond those that always do. Names as in syscalls(2).";
    }
    {
      option = "hardening.allowSystemCalls";
      key = "hardening.allow_system_calls";
      type = "list";
      default = [ ];
      example = [ "ptrace" ];
      description = "Of those that always fail, what debuggers need: some of `ptrace`, `process_vm_readv`, `process_vm_writev`, `kcmp`.";
    }
    {
      option = "hardening.addressFamilies";
      key = "hardening.address_families";
      type = "list";
      default = [ "unix" "inet" "inet6" ];
      example = [ "unix" "inet" ];
      description = "Kinds of sockets that sessions may make: some of `unix`, `inet`, `inet6`.";
    }
  ];

  users = [
    {
      option = "projectRoots";
      key = "roots";
      type = "list";
      default = [ ];
      example = [ "~/projects" "/srv/shared/app" ];
      description = ''
        Directories in which they may start the agent, with everything below them. `~` is their home; a home itself cannot be one. At least
        one is needed.
      '';
    }
    {
      option = "configPath";
      key = "config";
      type = "text";
      default = null;
      example = ".config/pi";
      description = ''
        Their directory with the agent's configuration: absolute, or relative to their home. Where it is not said, it is
        `wrapper.hostConfigPath`.
      '';
    }
    {
      option = "runAs";
      key = "run_as";
      type = "text";
      default = null;
      example = "pi-agent-team";
      description = "The account that their agents run as, in the place of the one that `user` and `accounts` say.";
    }
    {
      option = "sshKey";
      key = "ssh.key";
      type = "text";
      default = null;
      example = ".ssh/id_agent";
      description = "A key for the agent's git, absolute or relative to their home. The agent gets a copy, and the model can read it.";
    }
    {
      option = "environment";
      key = "env";
      type = "variables";
      default = { };
      example = { EDITOR = "nano"; };
      description = "Variables for their agents, over those of `m3ta.pi-agent.environment`. No secrets: everybody can read the policy.";
    }
  ];
}
