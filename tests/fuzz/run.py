"""A test of the suite `fuzz`: one fuzzer on its seeds and then for some seconds; PI_AGENT_SEED, printed, repeats it."""

import os
import sys
import tempfile
import time
from pathlib import Path

from fuzzing import fuzz, told


def main(arguments):
    if len(arguments) != 3:
        print("usage: run.py PROGRAM NAME SECONDS", file=sys.stderr)
        return 64
    program, name, seconds = arguments
    # 0 is a random one to libFuzzer, which would not be repeated by it.
    seed = int(os.environ.get("PI_AGENT_SEED") or time.time()) % 2**32 or 1
    with tempfile.TemporaryDirectory() as directory:
        corpus, findings = Path(directory, "corpus"), Path(directory, "findings")
        corpus.mkdir()
        findings.mkdir()
        outcome = fuzz(program, name, corpus, findings, int(seconds), seed)
        print(told(name, outcome, seed))
    return 0 if outcome.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
