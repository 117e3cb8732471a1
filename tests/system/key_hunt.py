"""Runs in the machine as root: looks for texts wherever a key could be, and prints where each was found, as JSON: {text: [places]}.

Standard input: {"texts": […], "without": [processes whose arguments have such a word, and files whose path begins so, are passed over]}

A place is "file PATH", "environment of", "arguments of", "memory of", "open file of" or "names of sockets of" with a program's name, "journal", or
"units". A text counts too where it stands as base64 or as hexadecimal digits.
"""

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

PIECE = 1 << 22
SKIPPED = {"proc", "sys", "usr"}  # of a root tree: the kernel's, and programs


def forms(text):
    """As it is, as hexadecimal digits, and as base64 wherever it begins in what was encoded."""
    data = text.encode()
    found = [data, data.hex().encode()]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data)
        whole = (before + len(data)) * 8 // 6  # the last one may depend on what follows
        found.append(encoded[-(-before * 8 // 6) : whole])
    return found


class Hunt:
    def __init__(self, texts, without):
        self.forms = {text: forms(text) for text in texts}
        self.longest = max(len(form) for all_forms in self.forms.values() for form in all_forms)
        self.without = without
        self.found = {text: set() for text in texts}
        self.seen = set()  # (device, inode) of files

    def look(self, place, data):
        for text, all_forms in self.forms.items():
            if any(form in data for form in all_forms):
                self.found[text].add(place)

    def look_in_stream(self, place, read):
        """In pieces that overlap."""
        end = b""
        while piece := read(PIECE):
            self.look(place, end + piece)
            end = piece[-self.longest :]

    def file(self, path, shown):
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode) or (facts.st_dev, facts.st_ino) in self.seen:
            return
        self.seen.add((facts.st_dev, facts.st_ino))
        with open(path, "rb", buffering=0) as file:
            self.look_in_stream(f"file {shown}", file.read)

    def tree(self, root):
        """Of the machine ("") or of a process's view (/proc/PID/root)."""
        for place, directories, files in os.walk(f"{root}/"):
            inside = place.removeprefix(root)
            self.look(f"file {inside}", " ".join([*directories, *files]).encode("utf-8", "surrogateescape"))
            if {"etc", "usr"} <= set(directories):
                directories[:] = set(directories) - SKIPPED
            for name in files:
                path, shown = os.path.join(place, name), os.path.join(inside, name)
                if not shown.startswith(tuple(self.without)):
                    ignore_what_is_gone(self.file, path, shown)

    def process(self, pid):
        directory = f"/proc/{pid}"
        arguments = Path(directory, "cmdline").read_bytes()
        if any(word.encode() in arguments for word in self.without):
            return
        name = os.path.basename(os.readlink(f"{directory}/exe"))
        self.look(f"arguments of {name}", arguments)
        self.look(f"environment of {name}", Path(directory, "environ").read_bytes())
        self.look(f"names of sockets of {name}", Path(directory, "net/unix").read_bytes())
        for number in os.listdir(f"{directory}/fd"):
            ignore_what_is_gone(self.descriptor, f"{directory}/fd/{number}", name)
        with open(f"{directory}/mem", "rb", buffering=0) as memory:
            for line in Path(directory, "maps").read_text(errors="replace").splitlines():
                if line.split()[1].startswith("rw"):
                    self.mapping(memory, f"memory of {name}", *(int(part, 16) for part in line.split()[0].split("-")))

    def descriptor(self, path, name):
        """Of a file that has no name any more."""
        if os.readlink(path).endswith("(deleted)") and stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb", buffering=0) as file:
                self.look_in_stream(f"open file of {name}", file.read)

    def mapping(self, memory, place, begin, end):
        memory.seek(begin)
        left = end - begin

        def read(size):
            nonlocal left
            piece = memory.read(min(size, left)) if left else b""
            left -= len(piece)
            return piece

        try:
            self.look_in_stream(place, read)
        except (OSError, OverflowError):
            pass  # of a device

    def output(self, place, *command):
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
            self.look_in_stream(place, running.stdout.read)


def ignore_what_is_gone(look, *arguments):
    try:
        look(*arguments)
    except OSError:
        pass


def views(pids):
    """A process for each name space of mounts."""
    found = {}
    for pid in pids:
        try:
            found.setdefault(os.readlink(f"/proc/{pid}/ns/mnt"), pid)
        except OSError:
            pass
    return found.values()


def main():
    plan = json.load(sys.stdin)
    hunt = Hunt(plan["texts"], plan["without"])
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    for pid in pids:
        ignore_what_is_gone(hunt.process, pid)
    hunt.tree("")
    for pid in views(pids):
        ignore_what_is_gone(hunt.tree, f"/proc/{pid}/root")
    hunt.output("journal", "journalctl", "--no-pager", "--output=export")
    hunt.output("units", "systemctl", "show", "--all", "*")
    print(json.dumps({text: sorted(places) for text, places in hunt.found.items()}))


if __name__ == "__main__":
    main()
