# A NixOS machine in qemu, for `nix flake check` where there is nixpkgs: what tests/system/test_nixos_layout.py shows on Debian, on NixOS.
{ pkgs, module ? ./module.nix }:
let
  # Does what its arguments say, in the place of the real agent, which needs a model.
  agent = pkgs.writeShellScriptBin "pi" ''
    exec "$@"
  '';
  # As home-manager leaves it: a directory of links into the store.
  config = pkgs.linkFarm "home-manager-files" {
    "settings.json" = pkgs.writeText "settings.json" (builtins.toJSON { theme = "dark"; defaultModel = "theirs"; });
    "mcp.json" = pkgs.writeText "mcp.json" (builtins.toJSON { mcpServers.files.command = "files"; });
    "AGENTS.md" = pkgs.writeText "AGENTS.md" "Be brief.\n";
  };
in
pkgs.testers.runNixOSTest {
  name = "pi-agent";

  nodes.machine = { pkgs, ... }: {
    imports = [ module ];
    environment.systemPackages = [ pkgs.git ];
    users.users.alice = { isNormalUser = true; uid = 1000; };
    users.users.eve = { isNormalUser = true; uid = 1001; };
    systemd.tmpfiles.rules = [
      "d /home/alice/projects 0755 alice users -"
      "d /home/alice/projects/demo 0755 alice users -"
      "d /home/alice/.pi 0755 alice users -"
      "d /home/alice/.pi/agent 0755 alice users -"
    ] ++ map (name: "L+ /home/alice/.pi/agent/${name} - - - - ${config}/${name}") [ "settings.json" "mcp.json" "AGENTS.md" ];
    m3ta.pi-agent = {
      enable = true;
      agent.package = agent;
      hostUsers.alice.projectRoots = [ "~/projects" ];
      settings.defaultModel = "ours";
      environment.MANAGED = "1";
    };
  };

  testScript = ''
    import json

    machine.wait_for_unit("multi-user.target")
    machine.succeed("systemctl is-active pi-agent-apply.service")

    def pi(command, user="alice", directory="/home/alice/projects/demo"):
        return f"su -l {user} -c 'cd {directory} && pi {command}'"

    with subtest("it runs as its own account, in the project, and the files are the user's"):
        assert machine.succeed(pi("id -un")).strip() == "pi-agent"
        machine.succeed(pi("touch made"))
        assert machine.succeed("stat -c %U /home/alice/projects/demo/made").strip() == "alice"

    with subtest("links into the store are copied, and what is managed wins"):
        settings = json.loads(machine.succeed(pi("cat /var/lib/pi-agent/users/alice/home/.pi/agent/settings.json")))
        assert settings["theme"] == "dark" and settings["defaultModel"] == "ours", settings
        assert machine.succeed(pi("cat /var/lib/pi-agent/users/alice/home/.pi/agent/AGENTS.md")) == "Be brief.\n"
        assert machine.succeed(pi("printenv MANAGED")).strip() == "1"

    with subtest("the programs of the system are there, and no sudo works"):
        assert machine.succeed(pi("git --version")).startswith("git version")
        machine.fail(pi("/run/wrappers/bin/sudo true"))

    with subtest("others, and other directories, are refused"):
        machine.fail(pi("true", user="eve", directory="/tmp"))
        machine.fail(pi("true", directory="/tmp"))

    with subtest("nothing is wrong that doctor knows of"):
        machine.succeed("pi-agentctl doctor")
  '';
}
