"""Holds every shell file to shellcheck. Skipped (77) where it is not installed."""

import shutil
import subprocess
import sys
from pathlib import Path

from sources import read_sources

DIRECTIVE = "# shellcheck shell="  # opens shell files that no suffix and no first line tells
SKIPPED = 77


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0], "meson.build").is_file():
        print("usage: shell_check.py PROJECT_DIRECTORY", file=sys.stderr)
        return 64
    program = shutil.which("shellcheck")
    if not program:
        print("skipped: shellcheck is not installed")
        return SKIPPED
    root = Path(arguments[0])
    files = [file.path for file in read_sources(root) if file.kind == "shell" or file.text.startswith(DIRECTIVE)]
    if not files:
        print(f"no shell file under {root}: nothing was checked")
        return 1
    outcome = subprocess.run([program, "--", *files], cwd=root, check=False)
    print(f"{len(files)} files checked with {program}")
    return 1 if outcome.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
