"""Runs small programs side by side as the check runs its machines: nobody's output or failure may get lost or mixed up."""

import io
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import lanes
from results import Results

PRELUDE = """
import json, sys, time
from pathlib import Path
path = Path(sys.argv[-1].removeprefix("--results="))
def passed(count):
    counts = {"passed": count, "failed": 0, "skipped": 0}
    path.write_text(json.dumps({"counts": counts, "notes": [], "suites": [{"suite": "s", "count": count}], "cases": [], "rows": []}))
"""


def ran(**programs):
    output, results = io.BytesIO(), Results()
    lanes.run({name: [sys.executable, "-c", PRELUDE + textwrap.dedent(text)] for name, text in programs.items()}, results, output)
    return output.getvalue().decode(), results


class Lanes(unittest.TestCase):
    def test_they_run_at_once_and_are_shown_one_after_the_other(self):
        with tempfile.TemporaryDirectory() as directory:
            sign = Path(directory, "sign")
            waits = f"""
                print("first begins", flush=True)
                while not Path({str(sign)!r}).exists(): time.sleep(0.01)
                print("first ends"); passed(2)"""
            shown, results = ran(first=waits, second=f"print('second'); print('of two', file=sys.stderr); passed(3); Path({str(sign)!r}).touch()")
        self.assertEqual(sorted(shown.splitlines()[2:]), ["of two", "second"])
        self.assertEqual(shown.splitlines()[:2], ["first begins", "first ends"])
        self.assertEqual(results.counts, {"passed": 5, "failed": 0, "skipped": 0})
        self.assertEqual([suite["count"] for suite in results.suites], [2, 3])

    def test_one_that_leaves_no_results_has_failed_and_the_other_counts(self):
        _, results = ran(first="sys.exit(3)", second="passed(1)")
        self.assertEqual(results.counts, {"passed": 1, "failed": 1, "skipped": 0})
        self.assertIn("status 3", results.notes[0][2])

    def test_one_that_leaves_half_its_results_has_failed(self):
        _, results = ran(first="passed(1); path.write_text(path.read_text()[:20])")
        self.assertEqual((results.counts["passed"], results.counts["failed"]), (0, 1))

    def test_when_this_one_is_interrupted_none_goes_on(self):
        class Interrupted(io.BytesIO):
            def write(self, data):
                if data:
                    raise KeyboardInterrupt

        started = time.monotonic()
        stays = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(60)"]
        with self.assertRaises(KeyboardInterrupt):
            lanes.run({"first": stays, "second": stays}, Results(), Interrupted())
        self.assertLess(time.monotonic() - started, 30)


if __name__ == "__main__":
    unittest.main()
