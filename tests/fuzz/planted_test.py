"""Each kind of bug, planted in a program made for that, is found and fails the suite with its reason; without one it passes."""

import base64
import contextlib
import io
import os
import re
import sys
import unittest
from unittest import mock

import run

PROGRAM = sys.argv.pop(1)
FOUND = {
    "memory": "heap-buffer-overflow",
    "undefined": "signed integer overflow",
    "exception": "std::out_of_range",
    "property": "property broken: planted",
    "internal": "property broken: planted",
    "message": "not harmless: planted",
    "slow": "takes too long",
}


class Planted(unittest.TestCase):
    def ran(self, bug, seconds="20"):
        output = io.StringIO()
        with mock.patch.dict(os.environ, FUZZ_PLANTED=bug, PI_AGENT_SEED="1"), contextlib.redirect_stdout(output):
            status = run.main([PROGRAM, "planted", seconds])
        return status, output.getvalue()

    def test_each_kind_is_found_and_told(self):
        for bug, reason in FOUND.items():
            with self.subTest(bug=bug):
                status, output = self.ran(bug)
                self.assertEqual(status, 1, output)
                self.assertIn(reason, output)
                encoded = re.search(r"echo (\S+) \| base64", output).group(1)
                self.assertTrue(base64.b64decode(encoded).startswith(b"?!"), output)

    def test_without_a_bug_it_passes_and_says_what_it_did(self):
        status, output = self.ran("", seconds="1")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"seed 1: [1-9]\d* executions, [1-9]\d* edges reached, status 0")

    def test_a_program_that_runs_nothing_fails(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run.main(["/bin/true", "planted", "1"]), 1)


if __name__ == "__main__":
    unittest.main()
