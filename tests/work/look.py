"""Run as root in the machine, outside: what is in a project after a script, as one JSON object for the test that compares."""

import grp
import hashlib
import json
import os
import pwd
import stat
import subprocess
import sys

OF_GIT = {
    "tree of HEAD": "rev-parse --verify --quiet HEAD^{tree}",
    "commit": "log -1 --format=%an<%ae>%cn<%ce>%s",
    "index": "ls-files --stage",
    "status": "status --porcelain",
    "branches": "for-each-ref --format=%(refname):%(tree):%(subject)",
    "stashes": "stash list --format=%gs",
}


def name(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def entry_of(path):
    """Type, mode, owner and what is in it, in words."""
    about = os.lstat(path)
    owner = f"{name(pwd.getpwuid, about.st_uid)}:{name(grp.getgrgid, about.st_gid)}"
    if stat.S_ISLNK(about.st_mode):
        return f"link to {os.readlink(path)} {owner}"
    if stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            content = f"{about.st_size} bytes {hashlib.sha256(file.read()).hexdigest()[:16]}"
    else:
        content = "-"
    return f"{stat.filemode(about.st_mode)} {owner} {content}"


def look(top):
    """The tree below `top`, of a git directory only what a person changes; and what git says of every repository in it."""
    tree, repositories = {}, []
    for directory, directories, files in os.walk(top):
        if ".git" in directories or ".git" in files:
            repositories.append(directory)
        if ".kept" in directories:  # what a case brings along so that it need not be made each time
            directories.remove(".kept")
        if os.path.basename(directory) == ".git":
            directories[:] = [one for one in directories if one == "hooks"]
            files = [one for one in files if one == "config"]
        for one in [*directories, *files]:
            path = os.path.join(directory, one)
            tree[os.path.relpath(path, top)] = entry_of(path)
    return tree, repositories


def git(repository, command, user):
    account = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
    done = subprocess.run([*account, "git", "-C", repository, *command.split()], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else f"status {done.returncode}"


def main():
    top, user = sys.argv[1:]
    tree, repositories = look(top)
    said = {f"{os.path.relpath(one, top)}: {what}": git(one, command, user) for one in repositories for what, command in OF_GIT.items()}
    print(json.dumps({"tree": tree, "git": said}))


main()
