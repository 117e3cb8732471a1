# The text of the policy, from the values of the options m3ta.pi-agent: a pure function that needs neither packages nor a library.
#
# `binary` is the agent's program (module.nix makes it from agent.package and binaryName). The text is JSON by lines, which is YAML, so that
# what `pi-agentctl check` says of a line can be found.
{ binary, values }:
let
  keys = import ./keys.nix;
  inherit (builtins) attrNames concatStringsSep filter foldl' head isAttrs isList mapAttrs tail toJSON;

  parts = path: filter builtins.isString (builtins.split "\\." path);
  valueAt = path: set: foldl' (found: name: found.${name}) set (parts path);

  # { a.b.c = value; } for the path a.b.c
  nested = path: value: if path == [ ] then value else { ${head path} = nested (tail path) value; };
  merge = a: b: if isAttrs a && isAttrs b then a // mapAttrs (name: value: if a ? ${name} then merge a.${name} value else value) b else b;

  # Only what differs from its default: what the policy does not say holds as the product has it.
  said = entries: set:
    foldl' merge { } (map
      (entry: let value = valueAt entry.option set; in if value == entry.default then { } else nested (parts entry.key) value)
      entries);

  user = set:
    { roots = set.projectRoots; }
    // (if set.configPath == null && values.wrapper.hostConfigPath != keys.configPath then { config = values.wrapper.hostConfigPath; } else { })
    // said keys.users set;

  policy = foldl' merge { version = 1; } [
    {
      agent = {
        inherit binary;
        create_user = false; # the configuration of the system makes them, and pi-agentctl nothing beside it
      } // (if values.binaryName == null || values.binaryName == "pi" then { } else { binary_name = values.binaryName; });
      wrapper = { hide_direct_binary = false; } # nothing in the store can be hidden; module.nix keeps it off every PATH instead
        // (if values.wrapper.commandName == "pi" then { } else { command_name = values.wrapper.commandName; });
      users = mapAttrs (name: user) values.hostUsers;
    }
    (said keys.policy values)
  ];

  lines = indent: value:
    let
      deeper = indent + "  ";
      block = open: close: items:
        if items == [ ] then open + close else "${open}\n${concatStringsSep ",\n" (map (item: deeper + item) items)}\n${indent}${close}";
    in
    if isAttrs value && !(value ? outPath) then
      block "{" "}" (map (name: "${toJSON name}: ${lines deeper value.${name}}") (attrNames value))
    else if isList value then block "[" "]" (map (lines deeper) value)
    else toJSON value;
in
{
  inherit policy;
  text = "# Made by the configuration of this system, from m3ta.pi-agent.\n" + lines "" policy + "\n";
}
