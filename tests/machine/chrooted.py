"""A build where nothing can be mounted, so systemd-nspawn cannot run: chroot(2) into the build root, with copies of the checkout and of results."""

import shutil
import subprocess
from pathlib import Path

from cache import CACHE, SOURCE, Build, emptied
from progress import quietly

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def not_source(directory, names):
    """What need not be copied: of the checkout's own directory also what was built or packaged there."""
    made = {name for name in names if name.startswith("build") or name == "dist"} if Path(directory) == SOURCE else set()
    return made | {".git", "__pycache__"}


class ChrootedBuild(Build):
    """One build directory for each build root: what another checkout left there is removed."""

    def __init__(self, name, **options):
        super().__init__(name, **options)
        self.log = CACHE / name / f"chrooted-{self.directory.name}.log"
        self.directory = self.root / "build"
        self.built_from = self.root / "built-from"

    def setup(self):
        if not self.built_from.exists() or self.built_from.read_text() != str(self.source):
            emptied(self.directory)
            self.built_from.write_text(str(self.source))
        super().setup()

    def _quietly(self, argv, destination=None, staged=None):
        source, results = emptied(self.root / "src"), emptied(self.root / "dest")
        if staged:
            shutil.copytree(staged, source, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copytree(self.source, source, ignore=not_source, symlinks=True, dirs_exist_ok=True)
        environment = [f"PATH={PATH}", "HOME=/root", *self.settings()]
        quietly(["chroot", self.root, "env", "-i", *environment, *argv], self.log, shown_as=argv)
        if destination:
            for result in results.iterdir():
                subprocess.run(["cp", "-a", "--", result, destination], check=True)
