"""Some three hundred paths of every kind of place, and what processes may do with them: in a session, and outside of any."""

import contextlib
import json
import shlex

from launching import DEMO, PLAYING_POLICY, STATE, pi

USERS = {"alice": DEMO, "carol": "/srv/devs", "bob": None}
POLICY = PLAYING_POLICY + """projects: {mask: ['.env*'], protect: default}
view_paths: [/srv/tools]
toolchains: {readable: [~/.nvm], caches: [~/.npm]}
"""
PREPARE = f"""
mkdir -p /srv/tools/bin; echo x >/srv/tools/file
runuser -u alice -- sh -c 'cd {DEMO} && git init -q . 2>/dev/null; echo secret >.env; mkdir -p sub/deep ~/.nvm/bin ~/.npm ~/.ssh; echo k >~/.ssh/id
mkdir -p ~/.tools/bin ~/other ~/.config; echo t >~/.tools/bin/tool; echo o >~/other/file; ln -sfn ~/.tools/bin/tool outward; test -e ~/.bashrc || touch ~/.bashrc
ln -f .env other-name; echo v >~/.nvm/file; echo c >~/.npm/file; echo r >closed; chmod 000 closed; echo t >sub/deep/file'
"""
REMOVE = f"rm -rf /srv/tools {DEMO}/.env {DEMO}/other-name {DEMO}/.git {DEMO}/sub {DEMO}/closed /home/alice/.nvm /home/alice/.npm /home/alice/.ssh /home/alice/.tools /home/alice/other {DEMO}/outward"

# What a process itself reports, with only the session around it.
PROBE = """
import json, os, sys
paths = json.load(sys.stdin)
print(json.dumps([[os.path.lexists(path)] + [os.access(path, mode, effective_ids=True) for mode in (os.R_OK, os.W_OK, os.X_OK)] for path in paths]))
"""


def paths_for(machine, home, project):
    """About three hundred, of every kind of place."""
    listed = machine.root("ls -d /* /etc/* /usr/* /dev/* /proc/sys/* /sys/* /var/* /run/* 2>/dev/null | head -300", check=True).stdout.decode().split("\n")
    own = [project, f"{project}/new", f"{project}/.env", f"{project}/.git", f"{project}/.git/config", f"{project}/.git/hooks", f"{project}/sub/deep/file"]
    own += [f"{project}/closed", f"{project}/sub", f"{home}/.nvm", f"{home}/.nvm/file", f"{home}/.npm", f"{home}/.npm/file", f"{home}/.ssh", f"{home}/.ssh/id"]
    own += [home, "/home", "/root", "/root/.bashrc", "/etc/shadow", "/etc/passwd", "/etc/ssl/certs", "/usr/bin/env", "/srv", "/srv/tools", "/srv/tools/file", "/tmp", "/tmp/new"]
    for user in USERS:
        own += [f"{STATE}/{user}/home", f"{STATE}/{user}/home/.nvm/file", f"{STATE}/{user}/home/.npm/file", f"{STATE}/{user}/meta", f"/home/{user}"]
    return [path for path in dict.fromkeys([*listed, *own, "/AGENTS.md", "/var/tmp", "/dev/shm/x", "/proc/1/environ", "/no/such/place"]) if path]


@contextlib.contextmanager
def places(machine, policy):
    """The machine with something at these paths, under a policy; afterwards without."""
    machine.root(PREPARE, check=True)
    machine.install_policy(policy)
    yield machine
    machine.install_policy(PLAYING_POLICY)
    machine.root(REMOVE, check=True)


def _facts(paths, done):
    assert done.returncode == 0, done
    return {path: fact for path, fact in zip(paths, json.loads(done.stdout), strict=True)}


def facts_inside(machine, paths, user, project):
    """path: [exists, may be read, written, executed] in a session."""
    return _facts(paths, pi(machine, "sh", f"python3 -c {shlex.quote(PROBE)}", user=user, cwd=project, input=json.dumps(paths).encode()))


def facts_outside(machine, paths, account):
    """The same for a process of that account on the host."""
    become = ["setpriv", "--reuid", account, "--regid", account, "--init-groups", "--reset-env"]
    return _facts(paths, machine.root([*become, "python3", "-c", PROBE], input=json.dumps(paths).encode()))
