# The users and groups of the host that the configurations speak of.
{ ... }:
{
  users.users = {
    alice = { isNormalUser = true; home = "/home/alice"; group = "users"; extraGroups = [ "devs" "wheel" ]; };
    bob = { isNormalUser = true; home = "/home/bob"; group = "users"; };
    carol = { isNormalUser = true; home = "/srv/homes/carol"; group = "devs"; };
  };
  users.groups = { users = { }; devs.members = [ "bob" ]; };
}
