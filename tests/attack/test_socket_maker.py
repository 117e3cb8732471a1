"""Who made the wrapper's socket, when they are dead and their process number is somebody else's: only the uid counts, and it stays."""

import pytest
from target import Outcome

pytestmark = pytest.mark.position("user")

ALICE, BOB = 1000, 1001
# As root: a pair made by a process that is dead, and a living process of another uid that has its number.
ARRANGING = """
def made_by_the_dead(uid):
    pair = socket_made_by(uid)
    maker, of, _ = struct.unpack("3i", pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert of == uid and maker > 0 and not os.path.exists(f"/proc/{maker}")
    return pair, maker

def let_the_next_number_be(number):
    # A container's /proc/sys is read-only: one of its own, where nobody else sees it.
    child = os.fork()
    if child == 0:
        assert libc.unshare(CLONE_NEWNS) == 0
        mount(None, b"/", None, 1 << 18 | 1 << 14)  # private, with all below
        mount(b"proc", b"/mnt", b"proc")
        with open("/mnt/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(number - 1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def living(number, uid):
    for _ in range(200):
        let_the_next_number_be(number)
        child = os.fork()
        if child == 0:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            time.sleep(60)
            os._exit(0)
        if child == number:
            return child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    raise TimeoutError(f"nobody got the number {number}")
"""


def calling(maker, heir):
    """alice calls with a socket of `maker`, who is dead and whose number is a process of `heir` now."""
    script = f"""
pair, number = made_by_the_dead({maker})
heir = living(number, {heir})
answer = call(lambda c, s: ask(c, s, ["id", "-un"]), pair=pair, prepare=becoming("alice"))
answer["heir ended"] = os.waitpid(heir, os.WNOHANG)[0] != 0
os.kill(heir, signal.SIGKILL)
tell(answer)
"""
    return ARRANGING + script


@pytest.mark.parametrize("maker", [BOB, 0], ids=["another user", "root"])
def test_a_socket_of_somebody_dead_is_not_the_callers_though_the_number_of_its_maker_is(maker, prove):
    def attack(target):
        answer = target.play(calling(maker, ALICE), user="root")
        return Outcome(answer["ended"] == 0, answer)

    on, _ = prove(attack, "peer-credentials")
    assert f"was made by uid {maker}, but sudo was called by uid 1000" in on.seen["said"], on


@pytest.mark.parametrize("heir", [BOB, 0], ids=["another user", "root"])
def test_a_socket_of_the_caller_stays_theirs_though_the_number_of_its_maker_is_somebody_elses(heir, product):
    """And whoever has the number now is none of the session's: they are not ended with it."""
    answer = product.play(calling(ALICE, heir), user="root")
    assert answer["ended"] == 0 and answer["out"] == "pi-agent\n" and not answer["heir ended"], answer
