# The options that are keys of the policy, one entry each: options.nix declares them, and policy.nix writes the policy from them.
#
#   option       the option, below m3ta.pi-agent (for `users`: below hostUsers.NAME)
#   key          the key of the policy, as in docs/reference/policy.md (for `users`: below users.NAME)
#   type         a word of `typeOf` in options.nix, or { oneOf = [ … ]; }, with `orList` where a list may stand in its place, `orHosts` where a set of lists may
#   default      as in the policy; null where nothing holds unless it is said. What equals its default is left out of the policy.
#
# tests/nix holds all of this against `pi-agentctl schema`, so that a key that the policy gets is missed here.
let
  policy = builtins.concatMap import [ ./keys/agent.nix ./keys/projects.nix ./keys/configuration.nix ./keys/sessions.nix ];

  # What users and groups may say for their own sessions, as common/policy/policy_keys.cpp has it: options of the same names.
  ofUsers = [
    "network" "providers" "limits" "projects" "settings" "models" "keybindings" "mcp" "settings_lock" "env_files" "toolchains" "view_paths" "path"
    "devices" "scratch" "placement"
  ];
  section = key: builtins.head (builtins.split "\\." key);
  isOfUsers = entry: builtins.elem (section entry.key) ofUsers && entry.key != "projects.ownership" && entry.key != "placement.srun";
  forUsers = entry: entry // {
    default = null;
    description =
      let relation = if entry.type == "document" then "merged over" else "instead of"; in
      "`${entry.option}` for the sessions of this user or group, ${relation} what holds for others (docs/concepts/levels.md).";
  };
in
{
  inherit policy;
  users = import ./keys/users.nix ++ map forUsers (builtins.filter isOfUsers policy);
}
