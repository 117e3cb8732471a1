"""The journal takes what any account writes, as much and as large: what reads the record as root must not pay for it."""

import json
import uuid

import pytest
from record_check import IDS
from target import Outcome

pytestmark = pytest.mark.position("outsider")

MIB = 1 << 20
PEAK = 60 * MIB  # of a reader; the flood has more
ENTRIES, SIZE = 8, 3 * MIB
EVE = 1002

# A datagram holds less, so each entry goes as a sealed file (systemd.io, native journal protocol).
FLOOD = f"""
import array, fcntl, os, socket, sys
uid, user = os.getuid(), sys.argv[1]
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for number in range({ENTRIES}):
    fields = {{"MESSAGE": "flood", "MESSAGE_ID": "{IDS["denied"]}", "PI_AGENT_EVENT": "denied", "PI_AGENT_UID": str(uid), "PI_AGENT_USER": user, "PI_AGENT_STATUS": "77",
              "PI_AGENT_REASON": f"flood {{number}} ".ljust({SIZE}, "r"), "FLOOD": f"flood {{number}} ".ljust({SIZE}, "f")}}
    file = os.memfd_create("entry", os.MFD_ALLOW_SEALING)
    for name, value in fields.items():
        os.write(file, name.encode() + b"\\n" + len(value).to_bytes(8, "little"))
        os.write(file, value.encode() + b"\\n")
    fcntl.fcntl(file, 1033, 0xF)  # F_ADD_SEALS: all
    sender.connect("/run/systemd/journal/socket")
    socket.send_fds(sender, [b""], [file])
"""
PEAK_OF = "import json, resource, subprocess, sys\ndone = subprocess.run(sys.argv[1:], capture_output=True, text=True)\nprint(json.dumps([done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, done.stdout.count('flood '), done.stderr]))"


def flood(target, user):
    machine = target.machine
    machine.run(["python3", "-c", FLOOD, user], user=user, check=True)
    machine.root(["journalctl", "--sync"], check=True)
    kept = machine.root(["journalctl", "--quiet", "--output=cat", "--output-fields=PI_AGENT_USER", f"PI_AGENT_USER={user}", "MESSAGE=flood"], check=True)
    assert kept.stdout.count(b"\n") >= ENTRIES, "the journal did not take the flood"


def test_an_accounts_entries_fill_the_memory_of_a_root_who_reads_the_record(prove):
    """`history`, which reads as `metrics` does."""

    def attack(target):
        flood(target, "eve")
        done = target.machine.root(["python3", "-c", PEAK_OF, "pi-agentctl", "history", "--json"], check=True)
        status, peak, shown, said = json.loads(done.stdout)
        assert status == 0 and shown >= ENTRIES, "what eve said of herself is shown, cut"
        return Outcome(peak > PEAK, (peak // MIB, said))

    prove(attack, "record-bounds")


def test_one_accounts_many_entries_leave_room_for_those_of_others(product, control_seen):
    """Of each user a thousand at most; root's own words have a room of their own."""
    machine = product.machine
    assert product.pi("true", cwd="/", user="alice").returncode == 77
    many = f"import socket\nsender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\nfor number in range(1500):\n    sender.sendto(b'MESSAGE=many\\nMESSAGE_ID={IDS['denied']}\\nPI_AGENT_EVENT=denied\\nPI_AGENT_UID={EVE}\\nPI_AGENT_STATUS=77\\nPI_AGENT_REASON=many\\n', '/run/systemd/journal/socket')"
    machine.run(["python3", "-c", many], user="eve", check=True)
    machine.root(["journalctl", "--sync"], check=True)
    done = machine.root(["pi-agentctl", "history", "--json"], check=True)
    starts = json.loads(done.stdout)["starts"]
    assert sum(start["reason"] == "many" for start in starts) == 1000 and b"a user who wrote too many" in done.stderr, done.stderr
    assert any(start["user"] == "alice" and start["denied_status"] == 77 for start in starts)
    control_seen("a thousand of them are shown, and that there are more is told")


def test_a_forged_id_makes_the_beginning_of_a_session_ambiguous(prove):
    def attack(target):
        session = target.session("sh", "-c", "echo $PI_AGENT_SESSION")
        session.end()
        forged = session.id[:20] + uuid.uuid4().hex[:12]
        fields = {"MESSAGE": "forged", "MESSAGE_ID": IDS["denied"], "PI_AGENT_EVENT": "denied", "PI_AGENT_SESSION": forged, "PI_AGENT_UID": str(EVE)}
        target.machine.run(["logger", "--journald"], user="eve", input="".join(f"{name}={value}\n" for name, value in fields.items()).encode(), check=True)
        target.machine.root(["journalctl", "--sync"], check=True)
        shown = target.machine.root(["pi-agentctl", "history", session.id[:20]])
        return Outcome(shown.returncode != 0, shown)

    prove(attack, "recorded-sessions")
