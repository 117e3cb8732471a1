"""Ids of other users and groups that a session knows, so as to keep them in access control lists: they give the agent nothing."""

import pytest
from target import DEMO, USER_NAMESPACE, Outcome
from test_inside import ALL_FILTERS, AS_ROOT
from test_projects import on_both

pytestmark = pytest.mark.position("agent")

THEIRS = f"{DEMO}/theirs"
MINE = f"{DEMO}/mine"
MAKE = f"echo bobs >{THEIRS}; chown bob:bob {THEIRS}; chmod 600 {THEIRS}; rm -f {MINE}; echo alices >{MINE}; chown alice:alice {MINE}"
REMOVE = f"rm -f {THEIRS} {MINE}"
TRY = """
import json, os, struct
def entry_for_itself(path):
    none = 0xFFFFFFFF
    entries = [(1, 6, none), (2, 6, os.getuid()), (4, 0, none), (16, 6, none), (32, 0, none)]
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))
try:
    {call}
    print(json.dumps("done"))
except OSError as error:
    print(json.dumps(error.strerror))
"""
CALLS = {
    "an entry for itself in another user's file": f'entry_for_itself("{THEIRS}")',
    "another user's file as its own": f'os.chown("{THEIRS}", os.getuid(), -1)',
    "its file as another user's": f'os.chown("{MINE}", 1001, -1)',
    "its file as root's": f'os.chown("{MINE}", 0, -1)',
    "its file as a group's that it is not in": f'os.chown("{MINE}", -1, 1500)',
    "another user's account": "os.setresuid(1001, 1001, 1001)",
    "another group": "os.setgroups([1500])",
}


@pytest.mark.parametrize("what", CALLS)
def test_with_the_ids_of_others_the_agent_does_not_get(what, prove, product, weak):
    with on_both((product, weak), MAKE, REMOVE):

        def attack(target):
            seen = target.python(TRY.replace("{call}", CALLS[what]))
            return Outcome(seen == "done", seen)

        prove(attack, *AS_ROOT)


@pytest.mark.parametrize(("option", "number"), [("-u", b"1001"), ("-g", b"1001")])
def test_a_program_that_another_user_left_with_their_rights_gives_none(option, number, prove, product, weak):
    """With a user namespace that does not know its owner, the kernel passes over these bits by itself; where it does, what is left holds."""
    program = f"{DEMO}/bobs-id"
    place = f"cp /usr/bin/id {program} && chown bob:bob {program} && chmod 6755 {program}"
    with on_both((product, weak), place, f"rm {program}"):

        def attack(target):
            done = target.pi(program, option)
            assert done.returncode == 0, done
            return Outcome(done.stdout.strip() == number, done)

        prove(attack, *ALL_FILTERS, "unit:NoNewPrivileges", "landlock", "nosuid-clones", *USER_NAMESPACE)
