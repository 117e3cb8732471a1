# The options m3ta.pi-agent: those of keys.nix, and those that are about the system and not the policy.
{ lib, pkgs }:
let
  inherit (lib) literalExpression mkOption recursiveUpdate setAttrByPath splitString types;
  keys = import ./keys.nix;

  # Each value of a mapping is what its key takes. Of keys that are none, assertions.nix tells.
  fits = properties: value: builtins.all
    (name: !(properties ? ${name}) || value.${name} ? _type || (typeOf properties.${name}).check value.${name}) # mkIf and its like have a _type
    (builtins.attrNames value);
  bare = schema: removeAttrs schema [ "description" "default" "examples" ];
  typeOf = schema:
    if schema ? enum then types.enum schema.enum
    else if schema ? anyOf then types.oneOf (map typeOf schema.anyOf)
    else {
      boolean = types.bool;
      integer = types.int;
      string = types.str;
      array = types.listOf (typeOf schema.items);
      object =
        if schema ? properties then
          let mapping = types.attrsOf (types.oneOf (map typeOf (lib.unique (map bare (builtins.attrValues schema.properties))))); in
          mapping // { check = value: mapping.check value && fits schema.properties value; } # as types.addCheck
        else types.attrsOf (if schema ? additionalProperties then typeOf schema.additionalProperties else types.anything);
    }.${schema.type};

  declare = entry: setAttrByPath (splitString "." entry.option) (mkOption {
    type = if entry.default == null then types.nullOr (typeOf entry.schema) else typeOf entry.schema;
    inherit (entry) default example description;
  });
  declareAll = entries: builtins.foldl' recursiveUpdate { } (map declare entries);
in
declareAll keys.policy
// {
  enable = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = "Whether this host runs the coding agent pi for its users under a policy, as an account of its own in a hardened unit.";
  };

  package = mkOption {
    type = types.package;
    default = pkgs.callPackage ./package.nix { };
    defaultText = literalExpression "pkgs.callPackage ./package.nix { }";
    example = literalExpression "pkgs.pi-agent";
    description = "pi-agent itself: the wrapper, the runner and pi-agentctl.";
  };

  agent.package = mkOption {
    type = types.nullOr types.package;
    default = pkgs.pi-coding-agent or null;
    defaultText = literalExpression "pkgs.pi-coding-agent or null";
    example = literalExpression "pkgs.pi-coding-agent";
    description = "The coding agent. It is on no PATH unless `wrapper.hideDirectBinary` is false.";
  };

  binaryName = mkOption {
    type = types.nullOr types.str;
    default = null;
    example = "pi-agent";
    description = ''
      The agent's program in bin of `agent.package`. Without it, the build of the system looks for `pi`, then for `pi-agent`.
    '';
  };

  createUser = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = ''
      Whether the module declares the agents' accounts and their group. Otherwise `users.users` and `users.groups` must declare them: the
      accounts in the group, and in no group of administrators.
    '';
  };

  wrapper = (declareAll keys.policy).wrapper // {
    commandName = mkOption {
      type = types.str;
      default = "pi";
      example = "agent";
      description = "What people type. Another name than pi makes another build of `package`.";
    };
    runnerName = mkOption {
      type = types.str;
      default = "pi-agent-runner";
      example = "coding-agent-runner";
      description = "File name of the program that sudo runs. Another name makes another build of `package`.";
    };
    hideDirectBinary = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Whether `agent.package` stays off everybody's PATH, so that people find only the wrapper. The store hides nothing: everybody can
        run the program there by its path, with their own rights, as they could run a copy of it.
      '';
    };
    hostConfigPath = mkOption {
      type = types.str;
      default = keys.configPath;
      example = ".config/pi";
      description = ''
        The users' own directory with the agent's configuration, absolute or relative to their homes. `hostUsers.<name>.configPath` is for
        one of them.
      '';
    };
  };

  hostUsers = mkOption {
    type = types.attrsOf (types.submodule {
      options = declareAll keys.users // {
        members = mkOption {
          type = types.listOf types.str;
          default = [ ];
          example = [ "alice" "bob" ];
          description = ''
            The members of a group, required with `accounts = "per-user"`: the module declares an account for the agent of each. It adds
            nobody to the group.
          '';
        };
      };
    });
    default = { };
    example = literalExpression ''{ alice.projectRoots = [ "~/projects" ]; "%devs".projectRoots = [ "/srv/devs" ]; }'';
    description = keys.aboutUsers;
  };
}
