# What the module makes of configurations, as data: `modules` is an attribute set of modules, or a file with one; each is
# evaluated with host.nix.
{ library, modules, ours }:
let
  lib = import library;
  pkgs = import ./stand_in/packages.nix { inherit lib ours; };

  given = if builtins.isAttrs modules then modules else import modules;

  evaluate = module: lib.evalModules {
    modules = [ ./stand_in/nixos.nix ../../nix/module.nix ./host.nix module ];
    specialArgs = { inherit pkgs; };
  };

  # Every option below m3ta.pi-agent, with what its documentation says; null where that lacks something. Values are texts of Nix or JSON.
  shown = value: if builtins.isAttrs value && value ? _type then value.text else builtins.toJSON value;
  optionsIn = path: options:
    builtins.concatMap
      (name:
        let option = options.${name}; at = "${path}.${name}"; in
        if name == "_module" then [ ]
        else if option._type or "" == "option" then
          [{
            path = at;
            type = if option ? type then true else null;
            description = option.description or null;
            default = if option ? defaultText then shown option.defaultText else if option ? default then shown option.default else null;
            example = if option ? example then shown option.example else null;
          }] ++ (if option.type ? getSubOptions then optionsIn at (option.type.getSubOptions [ ]) else [ ])
        else optionsIn at option)
      (builtins.attrNames options);

  seen = module:
    let
      evaluated = evaluate module;
      config = evaluated.config;
      cfg = config.m3ta.pi-agent;
      source = config.environment.etc."pi-agent/policy.yaml".source or { draft.text = null; script = null; };
    in
    {
      failed = map (assertion: assertion.message) (builtins.filter (assertion: !assertion.assertion) config.assertions);
      enabled = cfg.enable;
      # With the draft that it names, this is what the system's policy is built by.
      draft = source.draft.text;
      build = source.script;
      files = builtins.attrNames config.environment.etc;
      packages = map (package: package.outPath) config.environment.systemPackages;
      unitsOf = map (package: package.outPath) config.systemd.packages;
      sudo = { inherit (config.security.sudo) extraRules extraConfig; };
      sudo-rs = { inherit (config.security.sudo-rs) extraRules extraConfig; };
      tmpfiles = config.systemd.tmpfiles.rules;
      services = builtins.mapAttrs (name: service: service // { restartTriggers = map (trigger: trigger.name) service.restartTriggers; }) config.systemd.services;
      users = builtins.mapAttrs (name: user: user // { packages = map (package: package.outPath) user.packages; }) config.users.users;
      groups = config.users.groups;
    };
  # A wrong configuration is asked for nothing else: on NixOS, too, failed assertions come before all that is built.
  failedOf = module: (seen module).failed;
in
{
  configurations = builtins.mapAttrs (name: seen) given;
  failures = builtins.mapAttrs (name: failedOf) given;
  options = optionsIn "m3ta.pi-agent" (evaluate { }).options.m3ta.pi-agent;
  # What nixpkgs' own manual of options would leave undocumented.
  undocumented =
    if lib ? optionAttrSetToDocList then
      map (option: option.name) (builtins.filter (option: option.visible && !option.internal && (option.description or null) == null)
        (lib.optionAttrSetToDocList { inherit ((evaluate { }).options) m3ta; }))
    else null;
}
