"""Of a sanitized build: what is undefined, and what reads beyond its memory, ends a program and so fails its test, and is not only told."""

import os
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
FOUND = {"overflow": "signed integer overflow", "read behind": "heap-buffer-overflow"}
# Whatever the version of meson that runs this sets: by themselves the sanitizers go on.
SETTINGS = ("ASAN_OPTIONS", "UBSAN_OPTIONS")


def ran(bug):
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run([PROGRAM, bug], env=environment, capture_output=True, text=True, check=False)


class Planted(unittest.TestCase):
    def test_each_ends_the_program(self):
        for bug, reason in FOUND.items():
            with self.subTest(bug=bug):
                done = ran(bug)
                self.assertNotEqual(done.returncode, 0, done)
                self.assertIn(reason, done.stderr)
                self.assertNotIn("came to its end", done.stdout)

    def test_without_a_bug_it_comes_to_its_end(self):
        done = ran("")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "came to its end\n", ""))


if __name__ == "__main__":
    unittest.main()
