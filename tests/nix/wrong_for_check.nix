# Configurations that only the product's own check finds wrong: the module lets them pass, and the policy is not built.
let
  with' = options: { m3ta.pi-agent = { enable = true; hostUsers.alice.projectRoots = [ "~/projects" ]; } // options; };
in
{
  two_users = with' { hostUsers = { alice.projectRoots = [ "~/projects" ]; bob.projectRoots = [ "~/work" ]; }; };
  state_among_homes = with' { stateDir = "/home/agents"; };
  agent_is_a_user = with' { user = "alice"; createUser = false; group = "devs"; };
  public_suffix = with' { network.hosts = [ "*.github.io" ]; };
  no_amount = with' { limits.memory = "much"; };
}
