"""Makes the page of assurance and its rows from made-up results: failures and skips must be on it, and the sums must be those of the run."""

import gzip
import re
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
            results.add("passed", f"{label}: many", count=20, seconds=3.0)
            results.add("skipped", f"{label}: a case", "needs | more")
    with mock.patch.dict("os.environ", PI_AGENT_SEED="7"), results.suite("attack, 2 of 4", "two", sample="0.3") as label:
        results.add("failed", f"{label}: another", "first line\nsecond line")
    return results


def attack(name, position="agent", outcome="passed", **more):
    return {"name": f"tests.attack.test_{name}", "position": position, "outcome": outcome, **more}


class Attacks(unittest.TestCase):
    def rows(self, *cases):
        self.told = assurance.attacks(cases)
        return [[cell.strip() for cell in line.split(" | ")] for line in self.told.splitlines() if line.startswith("| ")][2:]

    def test_the_same_on_two_machines_is_one_line(self):
        with_seam = {"works without": "landlock, nosuid-clones"}
        rows = self.rows(attack("own_view::test_it_is_not_read[one-a link]", **with_seam), attack("own_view::test_it_is_not_read[two-a link]", **with_seam))
        told = ["| own view", "it is not read: a link", "the agent", "failed, as it should (one, two)", "landlock, nosuid-clones |"]
        self.assertEqual(rows, [told])
        self.assertIn("2 tries failed as they should, each on one machine. 2 of them", self.told)

    def test_what_failed_was_skipped_or_has_no_run_without_its_defence_is_told(self):
        rows = self.rows(attack("view::test_a[one]", outcome="failed"), attack("view::test_a[two]"), attack("view::test_b[one]", outcome="skipped"))
        self.assertEqual(rows[0][3:], ["**worked, or was not seen** (one); failed, as it should (two)", "– |"])
        self.assertEqual(rows[1][3:], ["not tried (one)", "– |"])
        self.assertIn("1 tries failed as they should, each on one machine. 0 of them", self.told)

    def test_a_control_stands_where_no_defence_was_taken_out(self):
        seen = {"control": "root finds it"}
        rows = self.rows(attack("view::test_a[one]", **seen), attack("view::test_b[one]", **seen, **{"works without": "landlock"}))
        self.assertEqual([row[4] for row in rows], ["control: root finds it |", "landlock |"])
        self.assertIn("2 tries failed as they should, each on one machine. 1 of them", self.told)
        self.assertIn("\n1 have a control", self.told)

    def test_what_failed_has_shown_nothing(self):
        self.rows(attack("view::test_a[one]", outcome="failed", control="root finds it"), attack("view::test_b[one]", outcome="failed", **{"works without": "landlock"}))
        self.assertIn("0 tries failed as they should, each on one machine. 0 of them", self.told)
        self.assertIn("\n0 have a control", self.told)

    def test_the_tests_of_tests_are_no_attacks(self):
        self.assertEqual(self.rows(attack("seams::test_a[one]", position="tests")), [])


class Figures(unittest.TestCase):
    def test_each_run_has_a_line_on_each_machine(self):
        cases = [attack("many::test_a_b[two-bwrap]", figures="5 → 6"), attack("many::test_a_b[one-bwrap]", figures="5 → 5"), attack("many::test_c[one]")]
        lines = assurance.figures(cases).splitlines()[2:4]
        self.assertEqual(lines, ["| a b: bwrap | one | 5 → 5 |", "| a b: bwrap | two | 5 → 6 |"])

    def test_a_fuzzer_has_a_line_and_is_no_attack(self):
        cases = [{"name": "tests.fuzz::child_messages[one]", "outcome": "passed", "figures": "9 executions, 8 edges reached"}]
        self.assertIn("| the fuzzer child messages | one | 9 executions, 8 edges reached |", assurance.figures(cases))
        self.assertTrue(assurance.attacks(cases).startswith("0 tries"))


class Work(unittest.TestCase):
    def test_each_family_has_a_line_on_each_machine(self):
        def case(machine, outcome="passed", **more):
            return {"name": f"tests.work.test_work::test_comes_to_the_same_inside[{machine}-a sentence]", "outcome": outcome, "family": "team_directories", **more}

        lines = assurance.work([case("one"), case("one", differs="`x` fails"), case("one", "failed", differs="`x` fails"), case("two")]).splitlines()
        self.assertEqual([line for line in lines if line.startswith("| team")], ["| team directories | one | 1 | 1 | 1 |", "| team directories | two | 1 | 0 | 0 |"])

    def test_a_run_without_it_says_so(self):
        self.assertIn("was not among them", assurance.work([{"name": "tests.work.test_page::test_x", "outcome": "passed"}]))


class Page(unittest.TestCase):
    def setUp(self):
        self.page = assurance.page(results_of_two_machines(), {"seed": "7"}, "the machines\n")

    def cells(self, head):
        """The rows of the table under a heading, taken apart."""
        section = self.page.split(f"## {head}\n\n")[1].split("\n## ")[0]
        return [[cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]

    def test_every_suite_has_a_line_with_its_own_counts_on_each_machine(self):
        head, _, *lines = self.cells("Suites")
        self.assertEqual(head[:3], ["suite", "one", "two"])
        self.assertEqual([line[:3] for line in lines], [
            ["system", "20 passed, 1 skipped", "20 passed, 1 skipped"],
            ["attack", "–", "1 failed (a sample of 0.3)"],
            ["**all**", "20 passed, 1 skipped", "20 passed, 1 failed, 1 skipped"],
        ])  # fmt: skip

    def test_parts_of_a_suite_are_one_line(self):
        results = Results()
        for part in ("1 of 2", "2 of 2"):
            with results.suite(f"system, {part}", "one"):
                results.add("passed", "a", count=3)
        self.assertIn("| system | 6 passed |", assurance.suites(results))

    def test_what_failed_is_named_with_its_reason(self):
        failed = self.page.split("## Failed")[1].split("## Skipped")[0]
        self.assertIn("attack, 2 of 4 on two (a sample of 0.3, seed 7): another: first line second line", failed)
        self.assertNotIn("Nothing", failed)

    def test_each_reason_for_skipping_has_a_line_with_how_many(self):
        self.assertEqual(self.cells("Skipped")[2:], [["2", "one, two", "needs / more"]])

    def test_the_slowest_are_named(self):
        self.assertEqual(self.cells("Slowest")[2:], [["3", "system on one: many"], ["3", "system on two: many"]])

    def test_it_is_one_screen_however_much_there_is(self):
        results = Results()
        with results.suite("system", "one") as label:
            for number in range(1000):
                results.add(("passed", "failed", "skipped")[number % 3], f"{label}: {number}", f"reason {number}", seconds=1.0)
        page = assurance.page(results, {"seed": "7"}, "the machines\n")
        self.assertLess(len(page.splitlines()), 80)
        self.assertIn("- and 323 more, which the rows have\n", page)
        self.assertIn("| 323 |  | 323 other reasons, which the rows have |", page)

    def test_the_rows_have_every_test_with_its_result(self):
        rows = assurance.rows(results_of_two_machines(), {"commit": "abc"})
        self.assertIn("\ncommit: abc\n", rows)
        for line in ("passed       3.0 s  system on two: many (20 cases)", "skipped             system on one: a case: needs | more"):
            self.assertIn(f"\n{line}\n", rows)
        self.assertIn("another: first line second line\n", rows)

    def test_the_package_has_neither_file(self):
        left_out = re.findall(r"-X(\S+)", (assurance.SOURCE / "debian/rules").read_text())
        for file in (assurance.PAGE, assurance.ROWS):
            name = str(file.relative_to(assurance.SOURCE))
            self.assertTrue([part for part in left_out if part in name], f"debian/rules does not leave {name} out")

    def test_a_run_writes_both_files_and_their_owner_is_the_checkouts(self):
        with tempfile.TemporaryDirectory() as directory:
            files = {"PAGE": Path(directory, "page.md"), "ROWS": Path(directory, "rows.txt.gz"), "SOURCE": Path(directory)}
            made_up = {"commit": lambda: "abc", "machines": lambda *_: "the machines\n", "version_of_node": lambda _: "1"}
            with mock.patch.multiple(assurance, **files, **made_up), mock.patch.dict("os.environ", PI_AGENT_SEED="7"):
                said = assurance.write(results_of_two_machines(), "abc", [0], ["attack"])
            self.assertEqual(said, "page.md and rows.txt.gz")
            self.assertIn("| commit | abc |", files["PAGE"].read_text())
            self.assertIn("system on two: many (20 cases)", gzip.decompress(files["ROWS"].read_bytes()).decode())

    def test_how_long_an_interrupted_part_took_is_not_told(self):
        with mock.patch("os.cpu_count", lambda: 2):
            self.assertEqual(assurance.duration([0], 600), "10 minutes on 2 processors")
            self.assertRegex(assurance.duration([0, 5000], 5600), r"^10 minutes on 2 processors, and .* interrupted .*: 1$")

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
