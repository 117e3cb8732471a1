# Keys of the policy about the agent: its accounts, whether it can be started, what confines it.
[
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
    option = "wrapper.clipboard";
    key = "wrapper.clipboard";
    type = "bool";
    default = true;
    example = false;
    description = "Whether the agent reaches the clipboard of its user's terminal (OSC 52), as its `/copy` does.";
  }
  {
    option = "sandbox.method";
    key = "sandbox.method";
    type.oneOf = [ "systemd" "bwrap" "podman" "docker" "none" ];
    default = "systemd";
    example = "bwrap";
    description = ''
      What confines the agent: a hardened unit of systemd, bubblewrap, a container of root's podman or docker, or an account of its own
      and nothing else. No method is ever used in the place of another (docs/platforms/methods.md).
    '';
  }
  {
    option = "sandbox.image";
    key = "sandbox.image";
    type = "text";
    default = null;
    example = "debian:12";
    description = ''
      For the method docker, which needs one: an image that is on this host. Only its root directory is used: programs, libraries and all
      else are the host's, and nothing of it runs.
    '';
  }
]
