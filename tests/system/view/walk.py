"""Run inside a session: everything there from / on, as JSON. One line each: a letter for the type, what this process may do (r, w, x), the path.

Not told one by one, and ended with "/...": what directories hold that are shown as a whole or are the kernel's, and of the session's own
places nothing at all. A socket, a pipe, a device, or anything that can be written is told wherever it is, except in the latter."""

import json
import os
import stat
import sys

WHOLE = {"/usr", "/opt", "/nix/store", "/proc/sys", "/proc/bus", "/proc/irq", "/proc/fs", "/proc/tty", "/proc/driver", "/proc/scsi",
         "/proc/dynamic_debug", "/proc/sysvipc", "/proc/acpi", "/proc/pressure", "/sys/devices/system"}
WHOLE |= {f"/var/lib/{name}" for name in ("aspell", "dictionaries-common", "dpkg", "gems", "ghc", "ghostscript", "ieee-data", "ispell", "sgml-base", "texmf", "xml-core")}
WHOLE |= {"/var/cache/fontconfig", "/var/lib/pi-agent/etc"}
OWN = {os.environ["HOME"], sys.argv[1]}
WHOLE |= set(sys.argv[2:])
SPECIAL = (stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)
LETTERS = {stat.S_IFDIR: "d", stat.S_IFREG: "f", stat.S_IFLNK: "l", stat.S_IFSOCK: "s", stat.S_IFIFO: "p", stat.S_IFCHR: "c", stat.S_IFBLK: "b"}


def rights(path):
    return "".join(letter if os.access(path, mode) else "-" for letter, mode in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)))


def line(path, kind, suffix=""):
    if kind == stat.S_IFLNK:
        return f"l {path} -> {os.readlink(path)}"
    return f"{LETTERS[kind]} {rights(path)} {path}{suffix}".replace(os.environ["PI_AGENT_SESSION"], "ID")


def below(directory):
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def is_process(directory, name):
    return directory == "/proc" and (name.isdigit() or name in ("self", "thread-self"))


def walk(directory, told, whole=False):
    for name in below(directory):
        path = os.path.join(directory, name)
        if is_process(directory, name):
            continue
        try:
            kind = stat.S_IFMT(os.lstat(path).st_mode)
        except OSError as error:
            told.append(f"? {path} {error.strerror}")
            continue
        as_whole = kind == stat.S_IFDIR and (path in WHOLE or path in OWN or directory == "/etc")
        odd = kind in SPECIAL or (kind != stat.S_IFLNK and os.access(path, os.W_OK))
        if not whole or odd:
            told.append(line(path, kind, "/..." if as_whole else ""))
        if kind == stat.S_IFDIR and path not in OWN:
            walk(path, told, whole or as_whole)


def processes():
    names = set()
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/comm") as file:
                names.add(file.read().strip())
        except OSError as error:
            names.add(f"{number}: {error.strerror}")
    return sorted(names)


seen = []
walk("/", seen)
print(json.dumps({"seen": seen, "processes": processes()}))
