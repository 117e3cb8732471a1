# The NixOS module m3ta.pi-agent: options, and what follows from them for the system. docs/platforms/nixos.md is its manual.
{ config, lib, pkgs, ... }:
let
  inherit (lib) mkAfter mkIf;
  cfg = config.m3ta.pi-agent;
  accounts = import ./accounts.nix { values = cfg; };

  # The names are a part of the programs (meson options), so that no argument and no variable can change them.
  package =
    if cfg.wrapper.commandName == "pi" && cfg.wrapper.runnerName == "pi-agent-runner" then cfg.package
    else cfg.package.override { inherit (cfg.wrapper) commandName runnerName; };
  runner = "${package}/libexec/pi-agent/${cfg.wrapper.runnerName}";

  # The agent's program by its own path. Which name it has can be asked only when the package is there: where the policy is built.
  unknownName = "@binary-name@";
  binary = "${cfg.agent.package}/bin/${if cfg.binaryName == null then unknownName else cfg.binaryName}";
  draft = pkgs.writeText "pi-agent-policy-draft.yaml" (import ./policy.nix { inherit binary; values = cfg; }).text;
  policy = pkgs.runCommand "pi-agent-policy.yaml" { inherit draft; } ''
    for name in ${if cfg.binaryName == null then "pi pi-agent" else lib.escapeShellArg cfg.binaryName}; do
      if [ -x ${cfg.agent.package}/bin/"$name" ]; then found=$name; break; fi
    done
    if [ -z "''${found-}" ]; then
      echo 'm3ta.pi-agent: ${cfg.agent.package} has no such program in bin; say which it is: m3ta.pi-agent.binaryName' >&2
      exit 1
    fi
    sed "s/${unknownName}/$found/" "$draft" >policy.yaml
    ${package}/bin/pi-agentctl check --policy-only policy.yaml
    cp policy.yaml $out
  '';

  # As admin/host/sudoers.cpp writes it elsewhere: no arguments, and none of what other rules say of environment and terminals.
  rules = mkAfter [{
    users = accounts.people;
    groups = accounts.groups;
    host = "ALL";
    runAs = "root";
    commands = [{ command = "${runner} \"\""; options = [ "NOPASSWD" ]; }];
  }];
  guard = "Defaults!${runner} env_reset, !env_keep, !env_check, !use_pty\n";
  # sudo-rs knows none of these words.
  guardOfOriginal = ''
    Defaults!${runner} !setenv, !requiretty, !log_input, !log_output, !pam_session, !pam_setcred
    Defaults!${runner} !log_subcmds, !intercept, !command_timeout, !noexec, !runcwd, !stay_setuid
    Defaults!${runner} !rlimit_as, !rlimit_cpu, !rlimit_data, !rlimit_fsize, !rlimit_locks, !rlimit_memlock, !rlimit_nofile, !rlimit_nproc, !rlimit_rss, !rlimit_stack
  '';

  userOf = agent: {
    name = agent.name;
    value = {
      isSystemUser = true;
      description = "pi-agent${if agent.user == null then "" else " of ${agent.user}"}";
      home = "/var/lib/pi-agent"; # as the product has it elsewhere, wherever the state is
      # An account of one user has a group of its own: files that agents make are nobody else's by group either.
      group = if agent.name == cfg.user then cfg.group else agent.name;
      extraGroups = if agent.name == cfg.user then [ ] else [ cfg.group ];
    };
  };
  groupNames = [ cfg.group ] ++ map (agent: agent.name) (builtins.filter (agent: agent.name != cfg.user) accounts.agents);
in
{
  options.m3ta.pi-agent = import ./options.nix { inherit lib pkgs; };

  config = mkIf cfg.enable {
    assertions = import ./assertions.nix { inherit lib config accounts; };

    environment.etc."pi-agent/policy.yaml".source = policy;
    environment.systemPackages = [ package ] ++ (if cfg.wrapper.hideDirectBinary then [ ] else [ cfg.agent.package ])
      # virtualisation.podman keeps these to its podman, and root starts them by their paths.
      ++ (if cfg.sandbox.method == "podman" then [ pkgs.crun pkgs.conmon ] else [ ]);

    security.sudo = mkIf (cfg.wrapper.enable && config.security.sudo.enable) {
      extraRules = rules;
      extraConfig = guard + guardOfOriginal;
    };
    security.sudo-rs = mkIf (cfg.wrapper.enable && config.security.sudo-rs.enable) {
      extraRules = rules;
      extraConfig = guard;
    };

    users = mkIf cfg.createUser {
      users = builtins.listToAttrs (map userOf accounts.agents);
      groups = builtins.listToAttrs (map (name: { inherit name; value = { }; }) groupNames);
    };

    systemd.packages = [ package ]; # the limits of all sessions of one user, as a drop-in of their slices
    # What is in it apply makes: with a `users` of tmpfiles, starts would find empty homes before the others are moved.
    systemd.tmpfiles.rules = [ "d ${cfg.stateDir} 0711 root root -" ];
    # What only the running host can tell: whether the policy fits it, and which sessions it does not allow any more. These end.
    systemd.services.pi-agent-apply = {
      description = "pi-agent: hold the host against its policy, and end sessions that it does not allow";
      wantedBy = [ "multi-user.target" ];
      after = [ "remote-fs.target" "systemd-tmpfiles-setup.service" ];
      restartTriggers = [ policy ];
      serviceConfig = {
        Type = "oneshot";
        RemainAfterExit = true;
        ExecStart = "${package}/bin/pi-agentctl apply --no-canary";
      };
    };
  };
}
