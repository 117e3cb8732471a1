"""What the real pi does with a key that it does not have: an answer comes as it is sent, images go, silence and sockets last; and a hunt for the key."""

import base64
import contextlib
import json
import os
import random
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
from launching import DEMO, STATE, leftovers, pi, read_line, wait_until_empty
from scripted_provider import BETWEEN_PIECES, PIECES, SAID
from test_gate_keys import KEYS, PLACE, SHAPES, held, service  # noqa: F401 (fixtures)

FULL = bool(os.environ.get("PI_AGENT_FULL"))
# The agent gives up after five minutes without a byte (undici's bodyTimeout), so its own silence is a little shorter than others'.
AGENTS_SILENCE, OTHERS_SILENCE = (290, 310) if FULL else (8, 9)
MARK = "that-no-session-has"  # in each of the keys
HUNT = "/root/key_hunt.py"
GO = f"{PLACE}/go"
FOUR = [next(shape for shape in SHAPES if shape[0] == name) for name in ("anthropic", "openai", "google", "openrouter")]
EACH = pytest.mark.parametrize(("provider", "model"), [shape[:2] for shape in FOUR], ids=[shape[0] for shape in FOUR])


@pytest.fixture(autouse=True)
def forget(request):
    """Each test sees its own requests."""
    if "service" in request.fixturenames:
        request.getfixturevalue("service").requests()


def model_of(provider, model):
    return "--provider", provider, "--model", model


# --- Answers.

# Each line of the agent's events, with the time when it came.
TIMED = 'pi "$@" </dev/null | while IFS= read -r line; do printf "%s %s\\n" "$EPOCHREALTIME" "$line"; done'


def pieces_of(output):
    """The pieces of text that the agent got, and when."""
    found = []
    for line in output.decode().splitlines():
        when, _, event = line.partition(" ")
        said = json.loads(event).get("assistantMessageEvent") or {}
        if said.get("type") == "text_delta":
            found.append((float(when), said["delta"]))
    return found


@EACH
def test_an_answer_comes_as_it_is_sent(provider, model, held, service):  # noqa: F811
    script = ["bash", "-c", TIMED, "bash", *model_of(provider, model), "--mode", "json", "please answer slowly"]
    done = held.run(script, cwd=DEMO)
    pieces = pieces_of(done.stdout)
    assert "".join(text for _, text in pieces) == SAID and len(pieces) == len(PIECES), done
    gaps = [after - before for (before, _), (after, _) in zip(pieces, pieces[1:])]
    assert all(gap > BETWEEN_PIECES / 2 for gap in gaps), gaps  # gathered anywhere, they would come at once


def picture(side, seed):
    """A PNG (RFC 2083) of noise, which nothing makes smaller."""
    draw = random.Random(seed)
    rows = b"".join(b"\0" + draw.randbytes(3 * side) for _ in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@EACH
def test_an_image_arrives_whole(provider, model, held, service):  # noqa: F811
    """More than a megabyte of a request's body."""
    image = picture(600, provider)
    held.write(f"{DEMO}/picture.png", image, owner="alice")
    done = pi(held, *model_of(provider, model), "-p", "@picture.png", "what do you see?")
    held.root(["rm", f"{DEMO}/picture.png"], check=True)
    assert (done.returncode, done.stdout.decode().strip()) == (0, SAID), done
    asked = service.requests()[-1]
    assert base64.b64encode(image).decode() in json.dumps(asked["request"]), json.dumps(asked)[:2000]
    assert KEYS[provider] in json.dumps(asked["fields"])


# Inside: a request as programs without a library of the provider's make it, in whose answer there is a long silence.
SILENT = """
import http.client, json, sys
connection = http.client.HTTPConnection("127.0.0.1", 809, timeout=600)
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "silent " + sys.argv[1]}]})
connection.request("POST", "/openrouter.ai/api/v1/chat/completions", body, {"content-type": "application/json"})
answer = connection.getresponse()
print(answer.status, answer.read().endswith(b"data: [DONE]\\n\\n"))
"""


def test_five_minutes_of_silence_pass(held, service):  # noqa: F811
    """Four agents and a program at the same time. Some seconds of it in a sample."""
    begin = time.monotonic()
    agents = [["pi", *model_of(provider, model), "-p", f"be silent {AGENTS_SILENCE}"] for provider, model, *_ in FOUR]
    program = ["pi-agentctl", "shell", "--", "-c", f"exec python3 -c '{SILENT}' {OTHERS_SILENCE}"]
    running = [held.popen(command, cwd=DEMO, stdin=subprocess.DEVNULL) for command in (*agents, program)]
    ends = [one.communicate(timeout=OTHERS_SILENCE + 60) for one in running]
    assert [out.decode().strip() for out, _ in ends] == [SAID] * len(FOUR) + ["200 True"], ends
    assert time.monotonic() - begin > OTHERS_SILENCE
    assert [one.returncode for one in running] == [0] * len(running)


# Inside: a WebSocket (RFC 6455) to where a program takes the provider to be.
SOCKET = """
import base64, hashlib, os, socket
def exactly(count):
    data = b""
    while len(data) < count:
        piece = one.recv(count - len(data)); assert piece, data
        data += piece
    return data
key = base64.b64encode(os.urandom(16))
one = socket.create_connection(("127.0.0.1", 809), 30)
one.sendall(b"GET /api.openai.com/v1/responses HTTP/1.1\\r\\nHost: 127.0.0.1:809\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
            b"Sec-WebSocket-Version: 13\\r\\nAuthorization: Bearer held-by-the-gate\\r\\nSec-WebSocket-Key: " + key + b"\\r\\n\\r\\n")
head = b""
while not head.endswith(b"\\r\\n\\r\\n"): head += exactly(1)
expected = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
assert head.startswith(b"HTTP/1.1 101 ") and expected in head, head
for text in (b"first", b"x" * 100, b"last"):
    mask = os.urandom(4)
    one.sendall(bytes((0x81, 0x80 | len(text))) + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(text)))
    assert exactly(2) == bytes((0x81, len(text))) and exactly(len(text)) == text
one.sendall(b"\\x88\\x80" + os.urandom(4))
assert one.recv(1) == b""
print("closed")
"""


def test_a_websocket_gets_the_key_and_lasts(held, service):  # noqa: F811
    """pi has one for logins alone, which no gate holds; other programs that speak to the same provider have one for keys."""
    done = held.run(["pi-agentctl", "shell", "--", "-c", "exec python3 -"], user="alice", cwd=DEMO, input=SOCKET.encode())
    assert (done.returncode, done.stdout) == (0, b"closed\n"), done
    [asked] = service.requests()
    assert (asked["path"], asked["fields"]["authorization"]) == ("/v1/responses", f"Bearer {KEYS['openai']}"), asked


# --- The hunt.


def hunt(machine, text, without=(f"{PLACE}/",)):
    """Where a text is on the machine and in every view of it. `without`: the provider, who has been told, and what it writes down."""
    machine.write(HUNT, Path(__file__).with_name("key_hunt.py").read_text())
    plan = json.dumps({"texts": [text], "without": list(without)}).encode()
    done = machine.root(["python3", "-B", HUNT], input=plan, check=True, timeout=240)
    machine.root(["rm", HUNT], check=True)
    return set(json.loads(done.stdout)[text])


OF_ROOT = {f"file {PLACE}-keys/{name}" for name in KEYS}


@contextlib.contextmanager
def asking(machine, *more):
    """A real agent in the middle of an answer, which goes on when the file is there."""
    machine.root(["rm", "-f", GO], check=True)
    process = machine.popen(["pi", *model_of(*FOUR[0][:2]), "-p", *more], cwd=DEMO, stdin=subprocess.DEVNULL)
    try:
        machine.root(f"for i in $(seq 300); do grep -q '^{{' {PLACE}/requests && exit; sleep 0.1; done; exit 1", check=True)
        yield process
    finally:
        machine.root(["touch", GO], check=True)
        if process.poll() is None:
            process.kill_all()
        process.communicate()
        machine.root(["rm", GO], check=True)


def goes_on(machine, process):
    machine.root(["touch", GO], check=True)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.decode().strip()) == (0, SAID), (out, err)


def test_a_hunt_finds_the_key_with_root_and_the_gate_alone(held, service):  # noqa: F811
    """While a real agent asks with it, and when all has been synced and recorded."""
    with asking(held, "please look, and hold") as process:
        assert hunt(held, MARK) == OF_ROOT | {"memory of pi-agent-gate"}
        goes_on(held, process)
    wait_until_empty(lambda: leftovers(held))
    assert hunt(held, MARK) == OF_ROOT


def gate_and_session(machine):
    """The processes of the one session that there is: its gate, and the first one inside."""
    listed = machine.root("systemctl list-units --plain --no-legend 'pi-agent-gate-*.service'", check=True).stdout.decode().split()
    units = (listed[0], listed[0].replace("-gate-", "-"))
    shown = machine.root(["systemctl", "show", "--property=MainPID", "--value", *units], check=True).stdout.decode().split()
    return [int(pid) for pid in shown]


# In the session's network: what passes on its loopback, until the end of input; which of the texts were in it.
LISTEN = """
import json, select, socket, sys
one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); one.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
print("ready", flush=True)
data = bytearray()
while True:
    ready = select.select([one, sys.stdin], [], [])[0]
    if one in ready: data += one.recv(1 << 17)
    elif ready: break
print(json.dumps([text for text in sys.argv[1:] if text.encode() in data]))
"""


def test_the_key_passes_no_wire_of_the_session(held, service):  # noqa: F811
    """And what stands in its place does."""
    with asking(held, "please look, and hold") as process:
        _, inside = gate_and_session(held)
        program = ["nsenter", "--target", str(inside), "--net", "python3", "-c", LISTEN, MARK, "held-by-the-gate", "seen-by-the-tool", PIECES[0]]
        with held.popen(program, user="root") as listener:
            assert read_line(listener) == b"ready\n"
            goes_on(held, process)
            heard = json.loads(listener.communicate()[0].splitlines()[-1])
    assert heard == ["held-by-the-gate", "seen-by-the-tool", PIECES[0]]


def test_a_gate_that_dies_leaves_no_core(held, service):  # noqa: F811
    with asking(held, "please hold") as process:
        gate, _ = gate_and_session(held)
        facts = held.root(f"grep '^Max core file size' /proc/{gate}/limits; stat -c %U /proc/{gate}/environ", check=True).stdout.decode()
        assert facts.split()[4:6] == ["0", "0"] and facts.split()[-1] == "root", facts  # root's: it is not dumpable (proc(5))
        held.root(["kill", "-SEGV", str(gate)], check=True)
        held.root(["touch", GO], check=True)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0 and b"gate has ended" in said, said
    wait_until_empty(lambda: leftovers(held))
    assert hunt(held, MARK) == OF_ROOT
    assert held.root(["sh", "-c", "ls /var/lib/systemd/coredump 2>/dev/null | grep gate"]).stdout == b""


# --- What the hunt is worth: each of these is where a key could be, and is found.

PLANTED = "a-text-that-somebody-has-planted"
PLANTING = f"""
set -e; read -r text
LEAK=$text sleep 600 &
(exec -a "$text" sleep 600) &
(exec 9<>/var/tmp/planted-gone; rm /var/tmp/planted-gone; echo "$text" >&9; exec sleep 600) &
echo "$text" | python3 -c '
import socket, sys, time
text = sys.stdin.read().strip()
named = socket.socket(socket.AF_UNIX); named.bind(chr(0) + text); time.sleep(600)' &
echo "$text" >{STATE}/alice/home/planted
echo "Bearer $text" | base64 -w 0 >/home/alice/planted
printf "$text" | od -An -v -tx1 | tr -d ' \\n' >/dev/shm/planted
logger "$text"; journalctl --sync
systemd-run --quiet --unit=planted --description="$text" sleep 600
sleep 1; echo ready; wait
"""
INSIDE = ["pi-agentctl", "shell", "--", "-c", "read -r text; echo $text >/tmp/planted-inside; echo ready; exec sleep 600"]
PLACES = {
    "environment of sleep", "memory of sleep", "arguments of sleep", "open file of sleep", "journal", "units", "file /home/alice/planted",
    "file /dev/shm/planted",
}  # fmt: skip


def test_the_hunt_finds_what_is_planted(machine):
    begun = []
    try:
        for command, user, cwd in ((INSIDE, "alice", DEMO), (["bash", "-c", PLANTING], "root", "/")):
            begun.append(machine.popen(command, user=user, cwd=cwd))
            begun[-1].stdin.write(f"{PLANTED}\n".encode())
            begun[-1].stdin.flush()
            assert read_line(begun[-1]) == b"ready\n"
        found = hunt(machine, PLANTED)
        never = hunt(machine, PLANTED[::-1])
    finally:
        for process in begun:
            process.kill_all()
            process.communicate()
        machine.root(f"systemctl stop planted; rm -f /home/alice/planted {STATE}/alice/home/planted /dev/shm/planted", check=True)
    assert PLACES <= found, PLACES - found
    # The agent's home is found where it is kept, or where the session shows it.
    for begin, end in (("memory of python3", ""), ("names of sockets of ", ""), ("file /", "/planted-inside"), ("file /", "/home/planted")):
        assert any(place.startswith(begin) and place.endswith(end) for place in found), (begin, end, found)
    assert never == set()


def test_the_hunt_finds_a_key_that_a_session_has(machine):
    """In a file of variables, as without a gate: then whatever runs inside has it."""
    own = "/home/alice/.pi/agent/env"
    machine.write(own, f"PLAIN_KEY={KEYS['anthropic']}\n", owner="alice", mode=0o600)
    with machine.popen(["pi-agentctl", "shell", "--", "-c", "echo ready; exec sleep 600"], cwd=DEMO) as process:
        try:
            assert read_line(process) == b"ready\n"
            found = hunt(machine, MARK)
        finally:
            process.kill_all()
            machine.root(["rm", own], check=True)
    assert {f"file {own}", "environment of sleep", "memory of sleep"} <= found, found
