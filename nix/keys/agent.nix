# Keys of the policy about the agent: its accounts, whether it can be started, what confines it.
[
  {
    option = "user";
    key = "agent.user";
    type = "text";
    default = "pi-agent";
    example = "coder";
    description = ''
      The account that agents run as. With `accounts = "per-user"` it is the beginning of each account's name, such as pi-agent-alice.
    '';
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
      `per-user`: the agent of each user has an account of its own. `shared`: all agents run as one account and can reach each other's
      state. Required if more than one user is possible. A single user's agent runs as `user`.
    '';
  }
  {
    option = "stateDir";
    key = "agent.state_dir";
    type = "text";
    default = "/var/lib/pi-agent";
    example = "/srv/agents";
    description = ''
      Where the agents' homes are. Only root may be able to change its parents, and none is a symlink. After a change, `pi-agentctl state
      move` moves the homes.
    '';
  }
  {
    option = "wrapper.enable";
    key = "wrapper.enable";
    type = "bool";
    default = true;
    example = false;
    description = ''
      Whether the agent can be started. `false` is the emergency stop: there is no sudo rule, `pi` says why, and sessions end when the
      system is switched.
    '';
  }
  {
    option = "wrapper.clipboard";
    key = "wrapper.clipboard";
    type = "bool";
    default = true;
    example = false;
    description = "Whether the agent can use the clipboard of its user's terminal (OSC 52), as its `/copy` does.";
  }
  {
    option = "sandbox.method";
    key = "sandbox.method";
    type.oneOf = [ "systemd" "bwrap" "podman" "docker" "none" ];
    default = "systemd";
    example = "bwrap";
    description = ''
      What confines the agent: a hardened unit of systemd, bubblewrap, a container of root's podman or docker, or nothing but an account
      of its own. pi-agent never uses another method in its place (docs/platforms/methods.md).
    '';
  }
  {
    option = "sandbox.image";
    key = "sandbox.image";
    type = "text";
    default = null;
    example = "debian:12";
    description = ''
      An image on this host. The method docker requires one, podman takes one, and no other method does. Only its root directory is
      used. Programs, libraries and everything else come from the host, and the image runs no program.
    '';
  }
]
