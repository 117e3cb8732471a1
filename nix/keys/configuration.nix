# Keys of the policy about the agent's configuration: files, documents, variables.
[
  {
    option = "config.classes";
    key = "config.classes";
    type.valuesOf = [ "mirror" "seed" "once" "agent" "never" ];
    default = { };
    example = { "extensions/experimental" = "never"; };
    description = ''
      To whom a path of the users' config directories belongs, with everything below it. `mirror`: the user's, copied at every start.
      `seed`: copied when the agent lacks it, or the user's has changed. `once`: copied until the agent changes something in it. `agent`:
      the agent's own. `never`: stays outside (docs/concepts/config-sync.md).
    '';
  }
  {
    option = "settings";
    key = "settings";
    type = "document";
    default = { };
    example = { defaultProvider = "local"; };
    description = "Merged over everybody's settings.json. What is written here wins.";
  }
  {
    option = "models";
    key = "models";
    type = "document";
    default = { };
    example = { providers = { }; };
    description = "Merged over everybody's models.json. Everybody on the host can read it, so write names of variables here, not keys.";
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
    description = "Whether the agent's settings.json is read-only in a session. `/settings` then keeps nothing.";
  }
  {
    option = "gitIdentity";
    key = "git_identity";
    type = "bool";
    default = true;
    example = false;
    description = "Whether the agent's git has the user's name, address and settings.";
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
      Variables for every agent. They win over the users' own. Everybody on the host can read the policy and the store, so put secrets
      into `environmentFiles`.
    '';
  }
  {
    option = "environmentFiles";
    key = "env_files";
    type = "list";
    default = [ ];
    example = [ "/run/secrets/pi.env" ];
    description = "Absolute paths, as text, of files with more variables for every agent, which only root can read. Secrets belong here.";
  }
  {
    option = "hostEnvironmentFiles";
    key = "host_env_files";
    type = "list";
    default = [ ".pi/agent/env" ];
    example = [ ];
    description = "Files with the users' own variables, absolute or relative to their homes. All that the policy sets wins over them.";
  }
]
