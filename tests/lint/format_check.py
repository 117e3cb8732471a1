"""Holds every C++ file to .clang-format. Skipped (77) without clang-format 14: other versions format differently."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from sources import read_sources

WANTED_MAJOR = "14"
SKIPPED = 77


def find_clang_format():
    """The path of a clang-format of the wanted version, or why there is none."""
    seen = []
    for name in (f"clang-format-{WANTED_MAJOR}", "clang-format"):
        path = shutil.which(name)
        if not path:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        if re.search(rf"version {WANTED_MAJOR}\.", version):
            return path, ""
        seen.append(f"{path} is {version!r}")
    return None, "; ".join(seen) or "clang-format is not installed"


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0], ".clang-format").is_file():
        print("usage: format_check.py PROJECT_DIRECTORY", file=sys.stderr)
        return 64
    program, reason = find_clang_format()
    if not program:
        print(f"skipped: formatting is checked with clang-format {WANTED_MAJOR}; {reason}")
        return SKIPPED
    root = Path(arguments[0])
    files = [file.path for file in read_sources(root) if file.kind == "cpp"]
    if not files:
        print(f"no C++ file under {root}: nothing was checked")
        return 1
    outcome = subprocess.run([program, "--dry-run", "-Werror", *files], cwd=root, check=False)
    print(f"{len(files)} files checked with {program}")
    if outcome.returncode != 0:
        print(f"to correct them: {program} -i FILE")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
