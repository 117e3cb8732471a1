"""Runs in the machine as an attacker: speaks the wrapper's protocol to the runner, well or badly, and tells what came back.

Encoding: common/base/channel.cpp and common/base/request.cpp. Scripts of the tests import everything from here and end with tell().
"""

import array
import ctypes
import json
import os
import pwd
import resource
import signal
import socket
import struct
import subprocess
import time

RUNNER = "/usr/libexec/pi-agent/pi-agent-runner"
SUDO = ["sudo", "-n", "--", RUNNER]
DIRECT = [RUNNER]
RECORD_MAGIC = 0x70692D7265630001
REQUEST, FAILURE, NOTICE, ENDED, SIGNAL, OPENED, STOPPED, READY, CONTINUE = range(1, 10)
PACKET_LIMIT = 32 * 1024
# Of questions about one's own sessions (runner/wire/answer.hpp).
QUESTION, ANSWER = 0x70692D61736B0002, 20
SESSIONS, STATE, STOP = range(3)
DEMO = "/home/alice/projects/demo"
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x2000000, 0x10000000, 0x20000000
CLONE_NEWTIME, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET = 0x80, 0x4000000, 0x8000000, 0x40000000
MS_BIND = 4096
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)
PATIENCE = 25  # seconds for a whole conversation


def number(value):
    return struct.pack("<Q", value & (1 << 64) - 1)


def text(value):
    data = os.fsencode(value)
    return number(len(data)) + data


def texts(values):
    return number(len(values)) + b"".join(text(value) for value in values)


def request(arguments=("true",), presentation=(), umask=0o022, terminal=(0, 0, 0), window=(24, 80, 0, 0), program=0, tmpdir="", debug=0, sessions=0, open_files=1024, kept_out=(), network=0, read_only=0, project_only=0, allow=(), ports=()):
    numbers = b"".join(number(value) for value in (umask, open_files, *terminal, *window, program))
    rest = numbers + text(tmpdir) + number(debug) + number(sessions) + number(network) + number(read_only) + number(project_only) + texts(allow) + texts(kept_out)
    rest += number(len(ports)) + b"".join(map(number, ports))
    return number(REQUEST) + texts(arguments) + texts(presentation) + rest


def send(channel, data, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([data], rights)


def send_record(channel, body, fds, size=None):
    send(channel, number(RECORD_MAGIC) + number(len(body) if size is None else size), fds)
    for start in range(0, len(body), PACKET_LIMIT):
        send(channel, body[start : start + PACKET_LIMIT])


class Stdio:
    """Empty input, and output that is kept: what a conversation hands over unless it wants something worse."""

    def __init__(self):
        self.reading, self.writing = os.pipe()
        self.empty = os.open("/dev/null", os.O_RDONLY)

    def fds(self):
        return [self.empty, self.writing, self.writing]

    def output(self):
        os.close(self.writing)
        os.set_blocking(self.reading, False)
        pieces = []
        try:
            while piece := os.read(self.reading, 65536):
                pieces.append(piece)
        except BlockingIOError:  # somebody still holds the other end
            pass
        return b"".join(pieces).decode(errors="replace")


def ask(channel, stdio, arguments=("true",), cwd=DEMO, connections=(), **more):
    """The request that a wrapper would send; `connections`: the channel of its ports."""
    directory = cwd if isinstance(cwd, int) else os.open(cwd, os.O_PATH | os.O_DIRECTORY)
    send_record(channel, request(arguments, **more), [directory, *stdio.fds(), *connections])


def wait_for_agent(program):
    """Until an agent runs this program; what the conversation does next comes in the middle of a session."""
    agents = {account.pw_uid for account in pwd.getpwall() if account.pw_name.startswith("pi-agent")}
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat(f"/proc/{pid}").st_uid in agents and open(f"/proc/{pid}/comm").read().strip() == program:
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise TimeoutError(f"no agent runs {program}")


class Decoder:
    def __init__(self, data):
        self.data = data

    def number(self):
        (value,) = struct.unpack("<Q", self.data[:8])
        self.data = self.data[8:]
        return value

    def text(self):
        size = self.number()
        value, self.data = self.data[:size], self.data[size:]
        return value.decode(errors="replace")


def hear(channel, answer):
    """Reads until the runner has nothing more to say."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        channel.settimeout(max(0.1, until - time.monotonic()))
        try:
            data = channel.recv(65536)
        except ConnectionResetError:  # it closed without reading all; what it said is still there
            continue
        except OSError:
            return
        if not data:
            return
        message = Decoder(data)
        kind = message.number()
        if kind == FAILURE:
            answer["status told"] = message.number()
            answer["said"] += message.text()
        elif kind == NOTICE:
            answer["notices"].append(message.text())
        elif kind == ENDED:
            by_signal = message.number()
            answer["ended"] = -message.number() if by_signal else message.number()


def complaint_of(child):
    """What a child says on standard error until it ends, which it must soon."""
    try:
        _, complaint = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        complaint = b"(did not end)"
    return complaint.decode(errors="replace")


def call(conversation=None, argv=SUDO, kind=socket.SOCK_SEQPACKET, pair=None, stdin=None, env=None, prepare=None):
    """Starts argv with a socket (or `stdin`) as its standard input, lets conversation(channel, stdio) happen, and tells all."""
    own, theirs = pair or socket.socketpair(socket.AF_UNIX, kind)
    stdio = Stdio()
    answer = {"status": None, "said": "", "ended": None, "notices": [], "out": ""}
    child = subprocess.Popen(
        argv, stdin=theirs if stdin is None else stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=env, preexec_fn=prepare, start_new_session=prepare is None,
    )  # fmt: skip
    theirs.close()
    try:
        if conversation:
            conversation(own, stdio)
        else:
            own.shutdown(socket.SHUT_WR)
    except OSError as failure:  # the runner has refused already; its word is on the way
        answer["sending"] = repr(failure)
    hear(own, answer)
    own.close()
    answer["said"] += complaint_of(child)
    answer["status"] = child.returncode
    answer["out"] = stdio.output()
    return answer


def question(about=SESSIONS, sessions=()):
    return number(QUESTION) + number(about) + texts(sessions)


def fields_of_answer(decoder):
    """What an answer has of each thing: ids and users of sessions, users of states, ids that are left."""

    def listed(read):
        return [read() for _ in range(decoder.number())]

    def session():
        identity, _uid, user = decoder.text(), decoder.number(), decoder.text()
        for _ in range(6):
            decoder.text()
        for _ in range(4):  # since when, and what it uses
            listed(decoder.number)
        return {"id": identity, "user": user}

    def state():
        user, _account, _path = decoder.text(), decoder.text(), decoder.text()
        decoder.number()
        listed(lambda: (decoder.number(), decoder.number()))
        decoder.number()
        decoder.text()
        return user

    return {"sessions": listed(session), "states": listed(state), "left": listed(decoder.text)}


def next_part(channel):
    """Of an answer; empty where no more comes."""
    while True:
        try:
            return channel.recv(PACKET_LIMIT)
        except ConnectionResetError:  # it closed without reading the question; what it said is still there
            continue


def put(data, fds=(), argv=SUDO, env=None, pair=None, first=None):
    """Puts a question into the socket, starts argv, and tells what came back; `first(theirs)` comes before."""
    own, theirs = pair or socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told = {"status": None, "said": "", "status told": None, "size": 0}
    if first:
        first(theirs)
    if data:
        send(own, data, fds)
    child = subprocess.Popen(argv, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, start_new_session=True)
    theirs.close()
    own.settimeout(PATIENCE)
    body = b""
    try:
        head = next_part(own)
        while head and (piece := next_part(own)):
            body += piece
    except OSError:
        pass
    own.close()
    told.update({"said": complaint_of(child), "status": child.returncode, "size": len(body)})
    if not body:
        return told
    decoder = Decoder(body)
    kind = decoder.number()
    if kind == FAILURE:
        told["status told"] = decoder.number()
        told["said"] += decoder.text()
        return told
    assert kind == ANSWER, kind
    return {**told, **fields_of_answer(decoder)}


def socket_made_by(uid):
    """A pair whose creator is somebody else: a child makes it and passes both ends back. For root only."""
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        send(there, b"x", [end.fileno() for end in ends])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(here, 1, 2)
    os.waitpid(child, 0)
    return tuple(socket.socket(fileno=fd) for fd in fds)


def becoming(name, *steps):
    """For call(prepare=...), as root: first the steps, then the account `name` for good."""
    account = pwd.getpwnam(name)

    def prepare():
        for step in steps:
            step()
        os.initgroups(name, account.pw_gid)
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)

    return prepare


def leaving(namespace):
    """A step for becoming(): into a new namespace (CLONE_NEW*), mounts shared with the old one."""

    def step():
        if libc.unshare(namespace) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        # The first process of a PID namespace is its init: if that were sudo's first child, all would end with it.
        if namespace & CLONE_NEWPID and os.fork() == 0:
            os.closerange(0, 1 << 10)
            os.execvp("sleep", ["sleep", str(2 * PATIENCE)])

    return step


def enter_own_namespace():
    """Enters a user and mount namespace that needs no privilege; ends the process where that is denied."""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        os._exit(1)
    for file, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{file}", "w") as proc:
            proc.write(line)


def directory_in_own_namespace(arrange, path):
    """What a user can have without privilege: `path` opened in a user and mount namespace of their own, after `arrange` there."""
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        enter_own_namespace()
        arrange()
        send(there, b"x", [os.open(path, os.O_PATH | os.O_DIRECTORY)])
        # The namespace must live on: what is mounted in a dead one has no path any more.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pause()
    there.close()
    _, fds, _, _ = socket.recv_fds(here, 1, 1)
    return fds[0]


def mount(source, target, kind, flags=0):
    if libc.mount(source, target, kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


def limit(which, soft, hard=None):
    resource.setrlimit(which, (soft, soft if hard is None else hard))


def tell(answer):
    print("\n" + json.dumps(answer))
