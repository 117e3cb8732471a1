# What is wrong with the options, in words and with what to do: found before anything is built. The rest `pi-agentctl check` tells.
{ lib, config, accounts }:
let
  inherit (builtins) any attrNames concatMap concatStringsSep elem filter;
  cfg = config.m3ta.pi-agent;
  users = config.users.users;
  groups = config.users.groups;
  at = option: "m3ta.pi-agent.${option}";
  entry = name: at "hostUsers.\"${name}\"";
  must = assertion: message: { inherit assertion message; };

  trimmed = path: if path != "/" && lib.hasSuffix "/" path then trimmed (lib.removeSuffix "/" path) else path;
  isHome = name: path: path == "~" || (users ? ${name} && path == trimmed users.${name}.home);
  ofRoots = name:
    let roots = map (root: trimmed (if builtins.isAttrs root then root.path or "" else root)) cfg.hostUsers.${name}.projectRoots; in
    [ (must (roots != [ ]) "${entry name}.projectRoots is empty: name at least one directory, or remove the entry.") ]
    ++ concatMap
      (root: [
        (must (root != "/") "${entry name}.projectRoots holds /, the whole file system: name the directory of a project, or one that holds projects.")
        (must (!isHome name root) "${entry name}.projectRoots holds ${root}, a home directory itself: name a directory below it, such as ~/projects.")
      ])
      roots;

  membersOf = group:
    filter (name: users.${name}.group == group || elem group users.${name}.extraGroups || elem name (groups.${group}.members or [ ])) (attrNames users);
  ofGroup = group:
    let
      here = cfg.hostUsers."%${group}";
      forgotten = filter (name: !(elem name here.members) && !(cfg.hostUsers ? ${name})) (membersOf group);
    in
    [
      (must (groups ? ${group}) "${entry "%${group}"}: there is no users.groups.${group}: declare the group, or remove the entry.")
      (must (!(groups ? ${group}) || !accounts.perUser || here.runAs != null || forgotten == [ ])
        "${entry "%${group}"}.members lacks ${concatStringsSep ", " forgotten}: with accounts = \"per-user\" each member of the group needs an account for the agent; add them, or give them entries of their own.")
    ];

  hasRootWithNetwork = name: any (root: builtins.isAttrs root && root ? network) cfg.hostUsers.${name}.projectRoots;
  # The hosts and keys of one level; what it does not say is null. Levels together are for the product's own check.
  ofNetwork = level:
    let
      network = level.options.network;
      providers = if level.options.providers == null then { } else level.options.providers;
      names = filter (name: !(elem name [ "hosts" "may_grant" "via" "direct" "via_login_file" ])) (if builtins.isAttrs network then attrNames network else [ ]);
      closed = network == null || builtins.isAttrs network || network == "none" || level.isSaidBelow;
    in
    [
      (must (names == [ ]) "${level.at "network"} has ${concatStringsSep ", " names}: it may have hosts, may_grant, via, direct and via_login_file.")
      (must (!(lib.hasPrefix builtins.storeDir (if builtins.isAttrs network then network.via_login_file or "" else "")))
        "${level.at "network"}.via_login_file is in the store, which everybody can read: name a file that only root can read, such as one of agenix or sops-nix below /run.")
      (must (providers == { } || closed)
        "${level.at "providers"} keeps keys out of sessions whose ${level.at "network"} has no gate that could put them into requests: say network = { hosts = [ … ]; }.")
    ]
    ++ map
      (name: must (!(lib.hasPrefix builtins.storeDir (providers.${name}.key_file or "")))
        "${level.at "providers"}.${name}.key_file is in the store, which everybody can read: name a file that only root can read, such as one of agenix or sops-nix below /run.")
      (attrNames providers);

  ofKeys = name: map
    (option:
      let key = cfg.hostUsers.${name}.${option}; in
      must (key == null || !(lib.hasPrefix builtins.storeDir key)) "${entry name}.${option} is in the store, which everybody can read: name a file of the user's home, such as .ssh/id_agent.")
    [ "sshKey" "signingKey" ];

  account = agent: must (users ? ${agent.name})
    "${at "createUser"} is false, and there is no users.users.${agent.name} for the agent${if agent.user == null then "" else " of ${agent.user}"}: declare it, in the group ${cfg.group}, or say createUser = true.";

  agentPath = "${cfg.agent.package}";
  has = packages: any (package: "${package}" == agentPath) (filter (package: package != null) packages);
  onPathOf = filter (name: has users.${name}.packages) (attrNames users);
  agentName = if cfg.binaryName == null then "pi" else cfg.binaryName;

  sudo = config.security.sudo;
  rs = config.security.sudo-rs;
  notInWheel = filter (name: users ? ${name} && !(elem name (membersOf "wheel"))) accounts.people;
in
[
  (must (cfg.agent.package != null) "${at "agent.package"} is not set, and this nixpkgs has no pi-coding-agent: name the package of the agent.")
  (must (!cfg.wrapper.enable || cfg.hostUsers != { })
    "${at "wrapper.enable"} is true and nobody is authorised: add somebody to ${at "hostUsers"}, or say wrapper.enable = false.")
  (must (!cfg.wrapper.enable || sudo.enable || rs.enable)
    "${at "wrapper.enable"} needs sudo, which starts the runner: say security.sudo.enable = true or security.sudo-rs.enable = true.")
  (must (!cfg.wrapper.enable || !((sudo.enable && sudo.execWheelOnly) || (rs.enable && rs.execWheelOnly)) || (notInWheel == [ ] && accounts.groups == [ ]))
    "security.sudo.execWheelOnly keeps sudo from everybody outside of wheel, and so from users of ${at "hostUsers"} (${concatStringsSep ", " (notInWheel ++ map (group: "%${group}") accounts.groups)}): take it back, or authorise members of wheel by name alone.")
  (must (cfg.wrapper.hideDirectBinary || cfg.wrapper.commandName != agentName)
    "${at "wrapper.hideDirectBinary"} is false, and the agent's own program and the wrapper are both called ${agentName}: choose another wrapper.commandName, or say hideDirectBinary = true.")
]
++ concatMap ofRoots (attrNames cfg.hostUsers)
++ concatMap ofKeys (attrNames cfg.hostUsers)
++ map (name: must (users ? ${name}) "${entry name}: there is no users.users.${name}: declare the user, or remove the entry.") accounts.people
++ concatMap ofGroup accounts.groups
++ (if cfg.createUser then [ ] else
  map account accounts.agents
  ++ [ (must (groups ? ${cfg.group}) "${at "createUser"} is false, and there is no users.groups.${cfg.group}: declare it, or say createUser = true.") ])
++ (if cfg.agent.package == null || !cfg.wrapper.hideDirectBinary then [ ] else [
  (must (!(has config.environment.systemPackages))
    "environment.systemPackages holds the agent itself (${at "agent.package"}), so everybody finds it beside the wrapper: take it out, or say wrapper.hideDirectBinary = false.")
  (must (onPathOf == [ ])
    "users.users.<name>.packages of ${concatStringsSep ", " onPathOf} holds the agent itself (${at "agent.package"}), which is found before the wrapper: take it out, or say wrapper.hideDirectBinary = false.")
])
++ concatMap ofNetwork (
  [ { inherit at; options = cfg; isSaidBelow = any (name: cfg.hostUsers.${name}.network != null || hasRootWithNetwork name) (attrNames cfg.hostUsers); } ]
  ++ map (name: { at = option: "${entry name}.${option}"; options = cfg.hostUsers.${name}; isSaidBelow = hasRootWithNetwork name; }) (attrNames cfg.hostUsers)
)
++ map
  (file: must (!(lib.hasPrefix builtins.storeDir file)) "${at "environmentFiles"} holds ${file}: everybody can read the store; name a file that only root can read, such as one of agenix or sops-nix below /run.")
  (cfg.environmentFiles ++ concatMap (name: let own = cfg.hostUsers.${name}.environmentFiles; in if own == null then [ ] else own) (attrNames cfg.hostUsers))
