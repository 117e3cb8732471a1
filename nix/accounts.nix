# Which accounts agents run as, from the values of the options: what common/decide/decision.cpp and admin/host/accounts.cpp decide on the host.
{ values }:
let
  inherit (builtins) attrNames concatMap elem filter head substring stringLength;
  names = attrNames values.hostUsers;
  isGroup = name: substring 0 1 name == "%";
  perUser = values.accounts == "per-user";
  of = user: runAs: {
    name = if runAs != null then runAs else if perUser then "${values.user}-${user}" else values.user;
    user = if perUser || runAs != null then user else null;
  };
  ofEntry = name:
    let entry = values.hostUsers.${name}; in
    if !isGroup name then [ (of name entry.runAs) ]
    else if entry.runAs != null then [{ name = entry.runAs; user = null; }]
    else if perUser then map (member: of member null) (filter (member: !(elem member names)) entry.members)
    else [{ name = values.user; user = null; }];
  once = found: if found == [ ] then [ ] else [ (head found) ] ++ once (filter (other: other.name != (head found).name) found);
in
{
  people = filter (name: !isGroup name) names;
  groups = map (name: substring 1 (stringLength name) name) (filter isGroup names);
  inherit perUser;
  # Each once: { name, user }, where user is whose agent alone it is, or null.
  agents = once (concatMap ofEntry names);
}
