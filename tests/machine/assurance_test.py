"""Makes the page of assurance from made-up results: what failed or was skipped must be on it, and the sums must be those of the run."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import assurance
from results import Results


def results_of_two_machines():
    results = Results()
    for machine in ("one", "two"):
        with results.suite("system", machine) as label:
            results.add("passed", count=20)
            results.add("skipped", f"{label}: a case", "needs | more")
    with mock.patch.dict("os.environ", PI_AGENT_SEED="7"), results.suite("attack", "two", sample="0.3") as label:
        results.add("failed", f"{label}: another", "first line\nsecond line")
    return results


class Page(unittest.TestCase):
    def setUp(self):
        self.page = assurance.page(results_of_two_machines(), {"seed": "7"}, "the machines\n")

    def test_every_suite_has_a_line_with_its_own_counts(self):
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in self.page.splitlines() if line.startswith("| ")]
        counts = {(cells[0], cells[1]): cells[2:6] for cells in lines if len(cells) == 8}
        self.assertEqual(counts["system", "one"], ["all", "20", "0", "1"])
        self.assertEqual(counts["system", "two"], ["all", "20", "0", "1"])
        self.assertEqual(counts["attack", "two"], ["a sample of 0.3", "0", "1", "0"])
        self.assertEqual(counts["**sum**", ""], ["", "40", "1", "2"])

    def test_what_failed_and_what_was_skipped_is_named_with_its_reason(self):
        failed, skipped = self.page.split("## Failed")[1].split("## Skipped")
        self.assertIn("attack on two (a sample of 0.3, seed 7): another: first line second line", failed)
        self.assertEqual(skipped.count("a case: needs | more"), 2)
        self.assertNotIn("Nothing", failed + skipped)

    def test_nothing_is_said_where_there_is_nothing(self):
        self.assertEqual(assurance.page(Results(), {}, "").count("Nothing.\n"), 2)

    def test_the_version_of_a_kernel_comes_from_its_header(self):
        image = bytearray(0x1000)
        image[0x20E:0x210] = (0x300).to_bytes(2, "little")
        image[0x500:0x512] = b"6.1.0-9-x (builder"
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "vmlinuz")
            file.write_bytes(image)
            self.assertEqual(assurance.version_of_kernel(file), "6.1.0-9-x")


if __name__ == "__main__":
    unittest.main()
