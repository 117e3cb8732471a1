# Configurations that the module refuses, each with one thing wrong; test_module.py says in which words.
let
  with' = options: { m3ta.pi-agent = { enable = true; hostUsers.alice.projectRoots = [ "~/projects" ]; } // options; };
  agent = { type = "derivation"; name = "pi-coding-agent"; outPath = "${builtins.storeDir}/pi-coding-agent"; };
  roots = projectRoots: with' { hostUsers.alice = { inherit projectRoots; }; };
in
{
  no_roots = roots [ ];
  whole_file_system = roots [ "/" ];
  home_by_name = roots [ "~/" ];
  home_by_path = with' { hostUsers.carol.projectRoots = [ "/srv/homes/carol/" ]; };
  nobody = with' { hostUsers = { }; };
  unknown_user = with' { hostUsers.dave.projectRoots = [ "~/projects" ]; };
  unknown_group = with' { accounts = "shared"; hostUsers."%ops".projectRoots = [ "/srv/ops" ]; };
  forgotten_member = with' { accounts = "per-user"; hostUsers."%devs" = { projectRoots = [ "/srv/devs" ]; members = [ "alice" ]; }; };
  duplicate_command = with' { wrapper.hideDirectBinary = false; };
  duplicate_named_command = with' { wrapper = { hideDirectBinary = false; commandName = "coding-agent"; }; binaryName = "coding-agent"; };
  missing_account = (with' { createUser = false; }) // { users.groups.pi-agent = { }; };
  missing_group = (with' { createUser = false; }) // { users.users.pi-agent = { isSystemUser = true; }; };
  no_agent = with' { agent.package = null; };
  no_sudo = (with' { }) // { security.sudo.enable = false; };
  wheel_only = (with' { hostUsers.bob.projectRoots = [ "~/work" ]; }) // { security.sudo.execWheelOnly = true; };
  agent_on_path = (with' { }) // { environment.systemPackages = [ agent ]; };
  agent_on_path_of_a_user = (with' { }) // { users.users.alice.packages = [ agent ]; };
  unknown_network = with' { network = { hosts = [ "github.com" ]; ports = [ "443" ]; }; };
  key_without_gate = with' { network = "loopback"; providers.anthropic.key_file = "/run/secrets/anthropic.key"; };
  key_in_the_store = with' { network.hosts = [ ]; providers.anthropic.key_file = "${builtins.storeDir}/anthropic.key"; };
  users_key_in_the_store = with' { hostUsers.alice = { projectRoots = [ "~/projects" ]; sshKey = "${builtins.storeDir}/id_agent"; }; };
  secrets_in_the_store = with' { environmentFiles = [ "${builtins.storeDir}/pi.env" ]; };
}
