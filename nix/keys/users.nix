# Keys of the policy about one user, or the members of one group.
[
  {
    option = "projectRoots";
    key = "roots";
    type = "roots";
    default = [ ];
    example = [ "~/projects" "/srv/shared/app" ];
    description = ''
      Directories in which they may start the agent, with everything below. At least one is required. `~` is their home. A home itself
      cannot be a root, nor can what holds credentials (`~/.ssh`, `~/.config` and others). A set with `path` says what else holds there:
      `network`, `scope`, `protect`, `mask` and `read_only`, as in the policy (docs/concepts/levels.md).
    '';
  }
  {
    option = "readable";
    key = "readable";
    type = "list";
    default = [ ];
    example = [ "~/datasets" ];
    description = "Directories of their homes that their sessions see, read-only, besides the project.";
  }
  {
    option = "configPath";
    key = "config";
    type = "text";
    default = null;
    example = ".config/pi";
    description = ''
      Their directory with the agent's configuration, absolute or relative to their home. It cannot be what holds credentials (`~/.ssh`). Without it, it is `wrapper.hostConfigPath`.
    '';
  }
  {
    option = "runAs";
    key = "run_as";
    type = "text";
    default = null;
    example = "pi-agent-team";
    description = "The account that their agents run as, instead of the one that `user` and `accounts` name.";
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
    option = "signingKey";
    key = "signing.key";
    type = "text";
    default = null;
    example = ".ssh/id_signing";
    description = "An ssh key that signs the agent's commits, absolute or relative to their home. The agent gets a copy, and the model can sign anything with it.";
  }
  {
    option = "environment";
    key = "env";
    type = "variables";
    default = { };
    example = { EDITOR = "nano"; };
    description = ''
      Variables for their agents. They win over `m3ta.pi-agent.environment`. Everybody can read the policy, so put no secrets here.
    '';
  }
]
