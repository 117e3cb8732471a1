"""Installing pi-agent in a machine as its administrator does: from the Debian package, with apt."""

import contextlib
import functools
import os

from cache import Build
from machine import Machine

NEWER = "1000.0.0"  # than any release


class PackagedMachine:
    """A machine without the product, and the package of it in root's home; `newer` is an upgrade of `package` with another number only."""

    def __init__(self, machine, build):
        self.machine = machine
        self.build = build
        self.home = machine.filesystem / "root"
        self.package = build.package(self.home)

    @functools.cached_property
    def newer(self):
        return self.build.package(self.home, NEWER)

    def apt(self, *arguments, **options):
        return self.machine.root(["apt-get", "-q", "-y", *arguments], env={"DEBIAN_FRONTEND": "noninteractive"}, check=True, **options)

    def install(self, package=None):
        return self.apt("install", "--allow-downgrades", "--reinstall", f"/root/{(package or self.package).name}")

    def has(self, path):
        return self.machine.root(["test", "-e", path]).returncode == 0


@contextlib.contextmanager
def packaged_machine(machine_name):
    with Machine(f"package-{os.getpid()}", machine_name) as machine:
        machine.create()
        packaged = PackagedMachine(machine, Build(machine_name))
        for file in (machine.filesystem / "etc/dpkg/dpkg.cfg.d").iterdir():
            file.unlink()  # these roots are made without manuals; this package must be complete
        machine.boot()
        yield packaged
