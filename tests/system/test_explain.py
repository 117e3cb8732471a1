"""pi-agentctl explain --json holds of a session: what it says of paths, identity, variables, network and the rest, seen from inside."""

import fnmatch
import json
import shlex

import pytest
from administering import answer, said
from launching import DEMO, DENIED, PLAYING_POLICY, STATE, finish, pi, read_line, session, written_policy
from path_probe import POLICY, facts_inside, facts_outside, paths_for, places

USERS = {"alice": DEMO, "bob": "/home/bob/work/demo", "carol": "/srv/devs"}
# Nearly everything that can be said otherwise is.
OTHER_POLICY = PLAYING_POLICY + """projects: {mask: [sub/deep], protect: [README.md], scope: project}
view: host
toolchains: {readable: [~/.npm], caches: [~/.nvm]}
scratch: tmpfs
network: none
git_identity: false
box_notes: false
limits: {runtime: 2h}
"""
POLICIES = {"usual": POLICY, "other": OTHER_POLICY}
NOTHING = [False, False, False]
OWN = ("/tmp", "/var/tmp")  # "scratch"
READ_ONLY = ("/usr", "/opt", "/var/lib/dpkg")  # "view", of both modes
OF_THE_KERNEL = ("/proc", "/sys", "/dev", "/run")  # docs/concepts/view.md; explain does not mention them
PRESENTATION = {"TERM", "COLORTERM", "LANG", "LANGUAGE", "NO_COLOR", "TZ"}

# What the session says of itself, as one JSON text.
PROBE = """
import grp, json, os, pwd, shutil, socket, subprocess
def connects():
    try:
        socket.create_connection(("127.0.0.1", 8099), 2).close()
        return True
    except OSError:
        return False
def git(key):
    return subprocess.run(["git", "-C", "/", "config", key], capture_output=True, text=True).stdout.strip()
mounts = {line.split()[4]: line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo")}
environment = dict(e.split("=", 1) for e in open("/proc/%d/environ" % os.getppid()).read().split("\\0") if e)
print(json.dumps({
    "account": pwd.getpwuid(os.getuid()).pw_name, "directory": os.getcwd(), "variables": environment, "connects": connects(),
    "tmp": mounts["/tmp"], "identity": git("user.name"),
    "notes": os.path.exists("/AGENTS.md"), "tools": [bool(shutil.which("fd") or shutil.which("fdfind")), bool(shutil.which("rg"))],
    "temporary": os.path.isdir(os.environ["TMPDIR"]), "pid": os.getpid(),
    "configuration": open(os.environ["PI_CODING_AGENT_DIR"] + "/models.json").read(),
}))
"""


@pytest.fixture(scope="module", params=[(name, method) for name in POLICIES for method in ("systemd", "bwrap")], ids="-".join)
def told(request, playing):
    name, method = request.param
    with places(playing, POLICIES[name] + f"sandbox: {{method: {method}}}\n") as machine:
        yield machine


def explain(machine, user, project):
    shown = json.loads(machine.root(["pi-agentctl", "explain", "--json", "--user", user, "--cwd", project], check=True).stdout)
    assert shown["version"] == 1
    return shown


def lies_in(path, directories):
    return any(path == directory or path.startswith(directory + "/") for directory in directories)


def shown_homes(explained, kind):
    """What it says is shown of the user's home: its place in the agent's home, and on the host."""
    home = f"/home/{explained['user']}"
    present = [one for one in explained["toolchains"][kind] if one["state"] == "shown" and one["inside"]]
    return {explained["agent"]["home"] + one["inside"][1:]: home + one["path"][1:] for one in present}


def in_project(path, project, projects, outside):
    """Access to something in the project: the user's own, less what is masked and protected."""
    relative = path[len(project) + 1 :]
    if any(fnmatch.fnmatch(part, mask) or lies_in(relative, [mask]) for mask in projects["mask"] for part in relative.split("/")):
        return NOTHING
    protected = [".git/config", ".git/hooks"] if projects["protect"] == "default" else projects["protect"]
    exists, read, write, execute = outside
    if not lies_in(relative, protected):
        return [read, write, execute]
    return [read, False, execute] if exists else None  # a placeholder, not writable


def expected(path, explained, project, as_user, as_agent):
    """[read, write, execute] by what explain says; None where it says nothing that decides."""
    homes = shown_homes(explained, "readable")
    caches = shown_homes(explained, "caches")
    whole = project if explained["projects"]["scope"] == "project" else explained["directory"]["root"]
    if lies_in(path, [project]):
        return in_project(path, project, explained["projects"], as_user[path])
    if lies_in(path, [whole]):
        return as_user[path][1:]
    for inside, host in {**homes, **caches}.items():
        if lies_in(path, [inside]):
            read, write, execute = as_user[host + path[len(inside) :]][1:]
            return [read, write and inside in caches, execute]
    if lies_in(path, homes.values()):
        read, _, execute = as_user[path][1:]
        return [read, False, execute]
    if lies_in(path, [explained["agent"]["home"]]):
        return as_agent[path][1:]
    if path in OWN:
        return [True, True, True]
    besides = explained["view"]["besides"] + ["/etc"] * (explained["view"]["mode"] == "host")
    if lies_in(path, [*READ_ONLY, *besides]):
        read, _, execute = as_agent[path][1:]
        return [read, False, execute]
    # Directories on the way to what is shown are there, and hold nothing else. All the rest is hidden.
    if path == "/etc" or any(lies_in(shown, [path]) for shown in (whole, explained["agent"]["home"], *homes, *homes.values(), *besides, *OWN)):
        return None
    top = path.count("/") == 1
    return None if top or lies_in(path, ["/etc"]) else NOTHING


@pytest.mark.parametrize("user", USERS)
def test_of_two_hundred_paths(told, user):
    project = USERS[user]
    explained = explain(told, user, project)
    paths = paths_for(told, f"/home/{user}", project)
    paths += [f"{project}/README.md", *(path for home in shown_homes(explained, "readable").values() for path in (home, f"{home}/file"))]
    paths += told.root("ls -d /usr/*/* /opt | head -140; ls -d /var/*/* /srv/* /root/.* /home/* /boot/* | head -60").stdout.decode().split()
    paths = list(dict.fromkeys(paths))
    inside = facts_inside(told, paths, user, project)
    hosts = dict.fromkeys([*paths, *(host + rest for host in shown_homes(explained, "caches").values() for rest in ("", "/file"))])
    users, agents = (facts_outside(told, list(hosts), account) for account in (user, explained["agent"]["account"]))
    links = {path for path in paths if told.root(["test", "-L", path]).returncode == 0}
    decided, wrong = 0, {}
    for path in paths:
        if lies_in(path, OF_THE_KERNEL) or path in links:
            continue
        seen = inside[path][1:]
        said = expected(path, explained, project, users, agents)
        if said is None:
            said = [seen[0], False, seen[2]]
        else:
            decided += 1
        if seen != said:
            wrong[path] = (seen, said)
    assert not wrong, wrong
    assert decided > 200, decided


@pytest.mark.parametrize("user", USERS)
def test_of_everything_else(told, user):
    project = USERS[user]
    explained = explain(told, user, project)
    script = f"echo ready; python3 -c {shlex.quote(PROBE)}; read -r line; true"
    with session(told, "sh", script, user=user, cwd=project, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}) as process:  # without the user's own
        seen = json.loads(read_line(process))
        identifier = seen["variables"]["PI_AGENT_SESSION"]
        units = {kind: told.root(["systemctl", "is-active", name.replace("ID", identifier)]).stdout.strip() for kind, name in explained.get("unit", {}).items()}
        unit = explained.get("unit", {}).get("service", "").replace("ID", identifier)
        longest = told.root(["systemctl", "show", "--value", "--property=RuntimeMaxUSec", unit]).stdout.decode().strip() if unit else ""
        finish(process)
    method = explained["sandbox"]["method"]
    assert (explained["authorised"], explained["wrapper_enabled"], explained["directory"]["allowed"]) == (True, True, True)
    assert (seen["account"], seen["directory"]) == (explained["agent"]["account"], explained["directory"]["path"]) and explained["agent"]["account_exists"]
    said = {name: one["value"].replace("ID", identifier) if "ID" in one["value"] else one["value"] for name, one in explained["environment"]["variables"].items()}
    shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert {name: value for name, value in seen["variables"].items() if name not in PRESENTATION | shell and not name.startswith("LC_")} == said
    assert said["HOME"] == explained["agent"]["home"]
    assert seen["connects"] == (explained["network"]["mode"] == "full")
    assert (seen["tmp"] == "tmpfs") == (explained["scratch"] == "tmpfs") and seen["temporary"]
    name = told.run(["git", "config", "user.name"], user=user, cwd="/").stdout.decode().strip()
    assert seen["identity"] == (name if explained["git_identity"] else "")
    assert seen["notes"] == explained["box_notes"]
    assert seen["tools"] == [tool not in explained["missing_tools"] for tool in ("fd", "rg")]
    assert seen["configuration"] == told.read(explained["config_directory"] + "/models.json").decode()
    assert units == {kind: b"active" for kind in (["service", "scope"] if method == "systemd" else [])}
    assert (longest in ("2h", "")) == (explained["limits"]["runtime"]["value"] == "2h" or method != "systemd"), longest
    own_numbers = method == "bwrap" or explained["systemd"]["private_pids"]
    assert (seen["pid"] < 100) == own_numbers, seen["pid"]


def test_of_the_program(told):
    agent = explain(told, "alice", DEMO)["agent"]
    with session(told, "signals") as process:
        running = told.root(["ps", "-u", agent["account"], "-o", "args="], check=True).stdout.decode()
        finish(process)
    assert f"{agent['program']} signals\n" in running, running


def test_root_is_told_who_may_start_pi(machine, playing_policy):
    playing_policy(PLAYING_POLICY)
    users = {line["user"]: line for line in answer(machine, "explain")["users"]}
    assert set(users) == {"alice", "bob", "carol"} and users["alice"]["agent"] == "pi-agent-alice" and users["alice"]["agent_exists"], users
    assert users["carol"]["entry"] == "users.%devs" and users["carol"]["roots"] == ["/srv/devs"] and users["carol"]["problem"] is None, users
    assert "carol  users.%devs" in said(machine, "explain")
    machine.root(["useradd", "-G", "devs", "fay"], check=True)
    try:
        assert "fay cannot start pi: this host has no account pi-agent-fay; run 'sudo pi-agentctl apply'" in said(machine, "explain")
    finally:
        machine.root(["userdel", "fay"], check=True)
    done = machine.root(["pi", "--pi-agent-explain"], env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and done.stdout.startswith(b"USER "), done


def test_what_pi_explains_it_says_as_pi(machine):
    with written_policy(machine, "version: 1\nnonsense: 1\n"):
        done = machine.run(["pi", "--pi-agent-explain"], cwd=DEMO)
    assert done.returncode == 78 and done.stderr.startswith(b"pi: /etc/pi-agent/policy.yaml:2:1: ") and b"pi-agentctl: " not in done.stderr, done


def test_where_and_to_whom_it_says_no(told):
    for user, cwd, word in (("alice", "/home/alice", "/home/alice"), ("bob", "/srv/shared", "/srv/shared"), ("eve", "/", "eve")):
        explained = explain(told, user, cwd)
        assert explained["authorised"] == (user != "eve") and not explained.get("directory", {}).get("allowed", False), explained
        refused = pi(told, "sh", "true", user=user, cwd=cwd)
        assert refused.returncode == DENIED and word.encode() in refused.stderr, refused


def test_the_state_of_others_is_hidden_from_each(told):
    for user, project in USERS.items():
        others = [path for other in USERS if other != user for path in (f"{STATE}/{other}/home", f"/home/{other}/.pi/agent/settings.json")]
        assert {path: fact[1:] for path, fact in facts_inside(told, others, user, project).items()} == dict.fromkeys(others, NOTHING)
