"""Access control lists that name others than the user: what a program copies inside is what it copies outside, or it is told that it is not."""

import json

import pytest
from launching import DEMO, agent_says, pi
from recipes import MACHINES
from test_methods import method  # noqa: F401

PLACE = f"{DEMO}/lists"
OTHERS = {"bob": 1001, "devs": 1500}
# Numbers of an access control list as the kernel has it in an extended attribute (acl(5)).
SET = """
import os, struct, sys
none = 0xFFFFFFFF
def put(kind, path):
    entries = [(1, 7, none), (2, 7, 1001), (4, 5, none), (8, 7, 1500), (16, 7, none), (32, 0, none)]
    os.setxattr(path, f"system.posix_acl_{kind}", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))
for path in ("file", "edited"):
    open(path, "w").write("x\\n")
    put("access", path)
for directory in ("directory", "inheriting"):
    os.mkdir(directory)
    put("default", directory)
os.chmod("directory", 0o750)
"""
# The named entries of each file and directory, and of the directories' defaults: {path: [[tag, rights, id], ...]}.
GET = """
import json, os, struct
lists = {}
for top, directories, files in os.walk("."):
    for name in directories + files:
        path = os.path.join(top, name)
        for kind in ("access", "default"):
            try:
                data = os.getxattr(path, f"system.posix_acl_{kind}", follow_symlinks=False)
            except OSError:
                continue
            lists[f"{path} {kind}"] = [entry for entry in struct.iter_unpack("<HHI", data[4:]) if entry[0] in (2, 8)]
print(json.dumps(lists))
"""
# What copies a list through the program, and what the kernel itself passes on.
COPIES = {
    "cp -p": "cp -p file p",
    "cp -a": "cp -a file a",
    "cp -a of a directory": "cp -a directory d",
    "cp --preserve=all": "cp --preserve=all file all",
    "sed -i": "sed -i s/x/y/ edited",
    "mv to another file system and back": "cp --preserve=all file moved; mv moved /tmp/moved-list && mv /tmp/moved-list moved",
    "copy2 of python": "python3 -c 'import shutil; shutil.copy2(\"file\", \"copied\")'",
    "tar": "mkdir t && tar --acls --numeric-owner -cf - file | tar --acls --numeric-owner -C t -xf -",
}
OTHER_WAYS = {
    "a directory in one with defaults": "mkdir inheriting/below",
    "a file in one with defaults": "cp --no-preserve=mode file inheriting/copy",
    "a repository in one with defaults": "git init -q inheriting/repository && git -C inheriting/repository config --list >/dev/null",
    "cp --no-preserve=mode": "cp -a --no-preserve=mode directory unlisted",
    "chmod": "chmod 750 edited",
}


@pytest.fixture
def tree(playing):
    """tree(run): what each way came to, and the lists that were there afterwards, as alice sees both."""

    def tree(run):
        playing.run(["sh", "-c", f"rm -rf {PLACE}; mkdir {PLACE}; cd {PLACE}; exec python3 -c \"$0\"", SET], check=True)
        told = {}
        for name, command in {**COPIES, **OTHER_WAYS}.items():
            done = run(f"cd {PLACE}; {command}")
            told[name] = (done.returncode, done.stderr.decode())
        return told, json.loads(playing.run(["python3", "-c", GET], cwd=PLACE, check=True).stdout)

    yield tree
    playing.root(["rm", "-rf", PLACE], check=True)


def knows_others(machine, name):
    return name != "systemd" or MACHINES[machine.recipe].systemd >= 257


def test_a_copy_keeps_what_others_may_or_says_that_it_does_not(playing, method, tree):  # noqa: F811
    told_outside, outside = tree(lambda script: playing.run(["sh", "-c", script], user="alice"))
    assert all(told == (0, "") for told in told_outside.values()), told_outside
    named = [entry for path, entries in outside.items() if path.startswith("./p ") for entry in entries]
    assert [entry[2] for entry in named] == list(OTHERS.values()), outside
    told, inside = tree(lambda script: pi(playing, "sh", script))
    if knows_others(playing, method):
        assert told == told_outside
        assert {path: inside.get(path) for path in outside} == outside and inside.keys() == outside.keys(), inside.keys() ^ outside.keys()
        return
    # With ids that the session's user namespace does not have, nothing can be written; what the kernel passes on stays whole.
    for name in ("cp -p", "cp -a", "cp -a of a directory", "cp --preserve=all"):
        assert told[name][0] == 1 and "preserving permissions" in told[name][1] and "Invalid argument" in told[name][1], told
    for name in OTHER_WAYS:
        assert told[name] == (0, ""), told
    assert {path: entries for path, entries in outside.items() if path.startswith(("./inheriting", "./file"))}.items() <= inside.items()
    assert "./p access" not in inside and "./edited access" not in inside


def test_whether_it_can_is_told_to_user_and_agent(playing, method):  # noqa: F811
    notes = agent_says(playing, "sh", "cat /AGENTS.md").decode()
    explained = playing.run(["pi", "--pi-agent-explain"], user="alice", cwd=DEMO, check=True).stdout.decode()
    assert ("Access control lists" in notes) == (not knows_others(playing, method)), notes
    assert ("entries for other accounts and groups cannot be copied" in explained) == (not knows_others(playing, method)), explained
    if method == "systemd" and knows_others(playing, method):
        assert "copies keep entries for accounts and groups with ids below 65536" in explained, explained
