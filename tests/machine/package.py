"""Makes the Debian packages, each in a root of its release, and has lintian judge them."""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the checkout

from cache import SOURCE, Build  # noqa: E402
from progress import CommandFailed, say  # noqa: E402
from recipes import MACHINES  # noqa: E402


def make(name, directory):
    build = Build(name)
    say(f"building the product for {name}")
    build.compile()
    say(f"making the package for {name}")
    package = build.package(directory)
    build.judge_package(package)
    print(package, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="package")
    parser.add_argument("--machine", action="append", choices=MACHINES)
    parser.add_argument("--output", type=Path, default=SOURCE / "dist")
    options = parser.parse_args()
    try:
        directory = options.output.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        for name in options.machine or MACHINES:
            make(name, directory)
        return 0
    except (CommandFailed, OSError) as failure:
        print(f"package: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
