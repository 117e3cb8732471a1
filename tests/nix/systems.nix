# Configurations of whole systems, beyond the policy: other sudos, other names, accounts of somebody else.
let
  with' = options: { m3ta.pi-agent = { enable = true; hostUsers.alice.projectRoots = [ "~/projects" ]; } // options; };
in
{
  not_enabled = { m3ta.pi-agent.hostUsers.alice.projectRoots = [ "~/projects" ]; };
  sudo_rs = with' { } // { security.sudo.enable = false; security.sudo-rs.enable = true; };
  other_rules = with' { } // { security.sudo.extraRules = [{ groups = [ "wheel" ]; commands = [ "ALL" ]; }]; };
  own_accounts = with' { createUser = false; } // {
    users.users.pi-agent = { isSystemUser = true; group = "pi-agent"; home = "/var/lib/pi-agent"; description = "made elsewhere"; };
    users.groups.pi-agent = { };
  };
  # alice by her own extraGroups, bob by the group's members.
  wheel_alone = with' { accounts = "shared"; hostUsers = { alice.projectRoots = [ "~/projects" ]; bob.projectRoots = [ "~/work" ]; }; } // {
    security.sudo.execWheelOnly = true;
    users.groups.wheel.members = [ "bob" ];
  };
  by_podman = with' { sandbox.method = "podman"; };
  shown = with' { wrapper = { hideDirectBinary = false; commandName = "agent"; }; };
  other_names = with' { wrapper = { commandName = "agent"; runnerName = "coding-runner"; }; };
}
