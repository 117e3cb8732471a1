"""A directory of the host that a user sends into their session over a socket: calls that open nothing reach no file there."""

import json

import pytest
from sent_directory import TAKE, sent
from target import Outcome

pytestmark = pytest.mark.position("agent")

PLACE = "/srv/sent"
VICTIM = f"{PLACE}/victim"
# Each call answers "done" or its errno; the directory is descriptor `fd`.
CALLS = {
    "truncate": "os.truncate(f'/proc/self/fd/{fd}/victim', 0)",
    "opening to truncate": "os.close(os.open('victim', os.O_WRONLY | os.O_TRUNC, dir_fd=fd))",
    "opening to read": "os.close(os.open('victim', os.O_RDONLY, dir_fd=fd))",
    "unlink": "os.unlink('victim', dir_fd=fd)",
    "rename": "os.rename('victim', 'moved', src_dir_fd=fd, dst_dir_fd=fd)",
    "making a file": "os.close(os.open('made', os.O_WRONLY | os.O_CREAT, dir_fd=fd))",
    "making a link": "os.symlink('victim', 'made-link', dir_fd=fd)",
    "a pipe": "os.mkfifo('made-pipe', dir_fd=fd)",
}
TRY = f"""{TAKE}
def tried(call):
    try:
        exec(call)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps(tried(sys.argv[1])))
"""


@pytest.fixture(scope="module", autouse=True)
def place(product, weak):
    """Open to all, and with a file of the agent's account, as an earlier session may have left one with its user's help."""
    for target in (product, weak):
        target.machine.root(["install", "-d", "-m", "0777", PLACE], check=True)
    yield
    for target in (product, weak):
        target.machine.root(["rm", "-r", PLACE], check=True)


def trying(call):
    def attack(target):
        target.machine.root(f"rm -rf {PLACE}/*; echo precious >{VICTIM}; chown pi-agent {VICTIM}; chmod 600 {VICTIM}", check=True)
        with sent(target, PLACE):
            done = target.pi("python3", "-c", TRY, CALLS[call])
        assert done.returncode == 0, done
        told = json.loads(done.stdout)
        unchanged = target.machine.root(f"ls {PLACE}; cat {VICTIM}").stdout == b"victim\nprecious\n"
        assert unchanged or told == "done", told
        return Outcome(told == "done", told)

    return attack


@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_done_there_by(call, prove):
    # Of truncate(2) Landlock has had a say of its own since Linux 6.2.
    on, _ = prove(trying(call), "landlock-truncate" if call == "truncate" else "landlock", quick=True)
    assert on.seen == "EACCES", on
