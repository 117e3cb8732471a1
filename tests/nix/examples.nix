# One configuration for each option that is a key of the policy: the option's example, and what the example cannot do without.
let
  keys = import ../../nix/keys.nix;

  with' = option: example: { lib, ... }: {
    m3ta.pi-agent = lib.mkMerge [
      { enable = true; hostUsers.alice.projectRoots = [ "~/projects" ]; }
      (lib.setAttrByPath (lib.splitString "." option) (lib.mkForce example))
      (if lib.hasSuffix "providers" option then { network.hosts = [ ]; } else { })
      (if option == "sandbox.image" then { sandbox.method = "docker"; } else { })
    ];
  };
  named = before: below: entry: { name = "${before}${entry.key}"; value = with' "${below}${entry.option}" entry.example; };
in
builtins.listToAttrs (map (named "" "") keys.policy ++ map (named "users.alice." "hostUsers.alice.") keys.users)
