# The options that are keys of the policy, made from schema.json, which a unit test holds against `pi-agentctl show --schema`. options.nix
# declares them, and policy.nix writes the policy from them. Each has:
#
#   option       the option, below m3ta.pi-agent (of `users`: below hostUsers.NAME)
#   key          the key of the policy, as in docs/reference/policy.md (of `users`: below users.NAME)
#   schema       the JSON Schema of its value, of which options.nix makes the type
#   default      as in the policy; null where nothing holds unless it is said. What equals its default is left out of the policy.
let
  inherit (builtins) attrNames concatMap concatStringsSep elem filter genList isAttrs replaceStrings substring;

  schema = builtins.fromJSON (builtins.readFile ./schema.json);
  ofUsers = schema.properties.users.additionalProperties;

  # Keys that policy.nix writes by itself.
  withoutOption = [ "version" "agent.binary" "agent.binary_name" "agent.create_user" "wrapper.command_name" "wrapper.hide_direct_binary" "users" ];

  # Any other key is its option, with capitals for underscores.
  renamed = {
    "agent.user" = "user";
    "agent.group" = "group";
    "agent.accounts" = "accounts";
    "agent.state_dir" = "stateDir";
    env = "environment";
    env_files = "environmentFiles";
    host_env_files = "hostEnvironmentFiles";
    roots = "projectRoots";
    config = "configPath"; # of a user; the section of the policy is no option
    "ssh.key" = "sshKey";
    "signing.key" = "signingKey";
  };
  letters = text: genList (at: substring at 1 text) 26;
  capitals = replaceStrings (map (letter: "_${letter}") (letters "abcdefghijklmnopqrstuvwxyz")) (letters "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

  leaves = before: section: concatMap
    (name:
      let key = before + name; below = section.properties.${name}; in
      if elem key withoutOption then [ ]
      else if below ? properties then leaves "${key}." below
      else [{ inherit key; option = renamed.${key} or (capitals key); schema = below; example = builtins.head below.examples; }])
    (attrNames section.properties);

  policy = leaves "" schema;
  users = leaves "" ofUsers;

  # As the table of keys has it, with the names of options, and what the schema says of the values below.
  quoted = map (name: "`${name}`");
  describe = entry:
    let
      values = entry.schema.additionalProperties or { };
      mappings = filter (below: isAttrs below && below ? properties) ([ values ] ++ entry.schema.anyOf or [ ] ++ entry.schema.items.anyOf or [ ]);
    in
    concatStringsSep " " (
      [ (replaceStrings (quoted (map (other: other.key) policy)) (quoted (map (other: other.option) policy)) entry.schema.description) ]
      ++ (if values ? enum then [ values.description ] else [ ])
      ++ map (mapping: "Keys of a mapping: ${concatStringsSep ", " (quoted (attrNames mapping.properties))}.") mappings
    );
in
{
  inherit renamed withoutOption;

  policy = map
    (entry: entry // {
      default = entry.schema.default or (if entry.schema.type or null == "object" then { } else null);
      description = describe entry;
    })
    policy;

  users = map
    (entry: entry // {
      # For a user who says no config there is wrapper.hostConfigPath.
      default = { roots = [ ]; env = { }; config = null; }.${entry.key} or (entry.schema.default or null);
      description = describe entry + (if entry.key == "config" then " Without it, it is `wrapper.hostConfigPath`." else "");
    })
    users;

  aboutUsers = schema.properties.users.description;
  configPath = ofUsers.properties.config.default;
}
