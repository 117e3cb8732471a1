"""Repositories as large projects have them: hundreds of submodules, a thousand worktrees. Laid out as git does it, by a script that its user runs in an empty directory."""

LIBRARIES = 160  # of Boost, whose names have parts ("numeric/ublas")
MODULES = 300  # of ClickHouse, below contrib/
WORKTREES = 1000

# {name: (kind, count)}
LAYOUTS = {
    "three hundred submodules": ("contrib", MODULES),
    "submodules of submodules": ("nested", LIBRARIES),
    "a thousand worktrees": ("worktrees", WORKTREES),
}

MAKE = r'''
import os, shutil, subprocess, sys
from pathlib import Path

kind, count = sys.argv[1], int(sys.argv[2])
git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
run = lambda *arguments, **options: subprocess.run([*git, *arguments], check=True, **options)
run("init", "-q", "-b", "main")
Path("file").write_text("one\n")
run("add", ".")
run("commit", "-qm", "start")
top = Path.cwd()
head_of = lambda place: subprocess.run([*git, "rev-parse", "HEAD"], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def add_submodule(template, within, gitdir, name):
    """Below the working tree `within`, whose git directory is `gitdir`."""
    tree, own = within / name, gitdir / "modules" / name
    tree.mkdir(parents=True)
    shutil.copytree(template, own)
    (tree / ".git").write_text(f"gitdir: {os.path.relpath(own, tree)}\n")
    with open(own / "config", "a") as config:
        config.write(f"\tworktree = {os.path.relpath(tree, own)}\n")
    with open(gitdir / "config", "a") as config:
        config.write(f'[submodule "{name}"]\n\tactive = true\n\turl = ./{name}\n')
    with open(within / ".gitmodules", "a") as modules:
        modules.write(f'[submodule "{name}"]\n\tpath = {name}\n\turl = ./{name}\n')
    return own


def record(within, commits):
    """Commits the submodules, by name with the commit of each, and returns that commit."""
    lines = "".join(f"160000 {commit}\t{name}\n" for name, commit in commits.items())
    run("update-index", "--add", "--index-info", cwd=within, input=lines.encode())
    run("add", ".gitmodules", cwd=within)
    run("commit", "-qm", "modules", cwd=within)
    return head_of(within)


if kind == "worktrees":
    for number in range(count):
        tree, own = top / f"wt/{number}", top / f".git/worktrees/{number}"
        tree.mkdir(parents=True)
        own.mkdir(parents=True)
        (tree / ".git").write_text(f"gitdir: {own}\n")
        (own / "commondir").write_text("../..\n")
        (own / "gitdir").write_text(f"{tree}/.git\n")
        (own / "HEAD").write_text(f"ref: refs/heads/w{number}\n")
    commit = head_of(top)
    run("update-ref", "--stdin", input="".join(f"create refs/heads/w{number} {commit}\n" for number in range(count)).encode())
    with open(".git/info/exclude", "a") as exclude:
        exclude.write("wt\n")
else:
    run("init", "-q", "-b", "main", "template")
    run("commit", "-q", "--allow-empty", "-m", "one", cwd="template")
    template = top / "template/.git"
    commit = head_of(template.parent)
    names = [f"contrib/lib{number}" if kind == "contrib" else f"libs/group{number % 20}/lib{number}" for number in range(count)]
    commits = dict.fromkeys(names, commit)
    for name in names:
        own = add_submodule(template, top, top / ".git", name)
        if kind == "nested" and names.index(name) % 16 == 0:
            add_submodule(template, top / name, own, "deep/inner")
            commits[name] = record(top / name, {"deep/inner": commit})
    shutil.rmtree(top / "template")
    record(top, commits)
'''
