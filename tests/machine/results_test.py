"""Feeds results of test programs to the sum: what did not test anything must never be counted as passed."""

import json
import tempfile
import unittest
from pathlib import Path

from results import Results, described

SUMMARY = "[doctest] test cases: {0} | {1} passed | {2} failed | {3} skipped"


def counted(*tests):
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "testlog.json"
        log.write_text("".join(json.dumps({"name": "unit / area", "returncode": 0, **test}) + "\n" for test in tests))
        results = Results()
        results.add_meson(log, "unit")
    return results


class Meson(unittest.TestCase):
    def test_cases_of_doctest_are_counted_singly(self):
        results = counted({"result": "FAIL", "stdout": SUMMARY.format(7, 4, 3, 2)})
        self.assertEqual(results.counts, {"passed": 4, "failed": 3, "skipped": 2})

    def test_a_case_that_gave_up_is_skipped_with_its_reason_and_did_not_pass(self):
        said = "[skipped] no terminals: a case | none here\n[skipped] another | no FUSE\n[skipped] another | no FUSE\n"
        results = counted({"result": "OK", "stdout": said + SUMMARY.format(9, 9, 0, 0)})
        self.assertEqual(results.counts, {"passed": 7, "failed": 0, "skipped": 2})
        self.assertIn(("skipped", "unit: area: no terminals: a case", "none here"), results.notes)
        self.assertIn(("skipped", "unit: area: another", "no FUSE"), results.notes)

    def test_a_program_without_cases_counts_once_by_its_result(self):
        results = counted({"result": "OK"}, {"result": "SKIP", "stdout": "why"}, {"result": "TIMEOUT"})
        self.assertEqual(results.counts, {"passed": 1, "failed": 1, "skipped": 1})
        self.assertIn(("skipped", "unit: area", "why"), results.notes)

    def test_every_program_is_a_row_with_its_time(self):
        results = counted({"result": "OK", "duration": 1.5}, {"result": "OK", "duration": 2.5, "stdout": SUMMARY.format(4, 4, 0, 0)})
        self.assertEqual(results.rows, [["passed", "unit: area", "", 1, 1.5], ["passed", "unit: area", "", 4, 2.5]])

    def test_what_a_fuzzer_did_is_kept_unless_it_failed(self):
        told = "json: seed 7: 1234 executions, 56 edges reached, status {0}\n"
        results = counted({"result": "OK", "stdout": told.format(0)}, {"result": "FAIL", "stdout": told.format(77)})
        self.assertEqual(results.cases, [{"name": "tests.fuzz::json[unit]", "outcome": "passed", "figures": "1234 executions, 56 edges reached"}])

    def test_a_program_that_crashed_after_its_cases_passed_has_failed(self):
        results = counted({"result": "FAIL", "stdout": SUMMARY.format(2, 2, 0, 0)})
        self.assertEqual((results.counts["passed"], results.counts["failed"]), (2, 1))


class Junit(unittest.TestCase):
    def test_a_case_counts_once_by_its_worst_and_keeps_what_its_entries_say_of_it(self):
        of_case = '<testcase classname="tests.attack.test_a" name="test_b[one]" time="0.375">'
        said = '<properties><property name="position" value="agent"/></properties>'
        cases = f'{of_case}{said}</testcase>{of_case}<error message="teardown&#10;more"/></testcase><testcase classname="c" name="d"/>'
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory) / "report.xml"
            report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
            results = Results()
            results.add_junit(report, "attack")
        self.assertEqual(results.counts, {"passed": 1, "failed": 1, "skipped": 0})
        self.assertEqual(results.notes, [("failed", "attack: tests.attack.test_a::test_b[one]", "teardown")])
        whole = Results()
        whole.add_json(results.as_json())
        self.assertEqual(whole.cases, [{"name": "tests.attack.test_a::test_b[one]", "outcome": "failed", "position": "agent"}])
        self.assertEqual(whole.rows, [["failed", "attack: tests.attack.test_a::test_b[one]", "teardown", 1, 0.75], ["passed", "attack: c::d", "", 1, 0.0]])


class Suites(unittest.TestCase):
    def test_each_suite_has_what_was_added_while_it_ran_even_when_it_broke(self):
        results = Results()
        results.add("passed", count=5)
        with results.suite("system", "one") as label:
            results.add("passed", count=2)
            results.add("failed", label, "why")
        with self.assertRaises(OSError), results.suite("attack", "one"):
            results.add("skipped", "a case", "why")
            raise OSError
        counts = [tuple(suite[key] for key in ("suite", "machine", "passed", "failed", "skipped")) for suite in results.suites]
        self.assertEqual(counts, [("system", "one", 2, 1, 0), ("attack", "one", 0, 0, 1)])

    def test_a_suite_is_described_with_what_did_not_pass(self):
        suite = {"suite": "system", "machine": "one", "sample": "0.3", "passed": 2, "failed": 1, "skipped": 0, "seconds": 9.7}
        self.assertEqual(
            described({**suite, "processor_seconds": 3}), "system on one (a sample of 0.3): 2 passed, 1 failed; 10 s, 3 s of processors"
        )

    def test_results_of_another_process_are_added_with_their_reasons(self):
        results, other = Results(), Results()
        results.add("failed", "mine", "why")
        with other.suite("system", "two"):
            other.add("passed", count=3)
            other.add("skipped", "theirs", "because")
        results.add_json(other.as_json())
        self.assertEqual(results.counts, {"passed": 3, "failed": 1, "skipped": 1})
        self.assertEqual(results.notes, [("failed", "mine", "why"), ("skipped", "theirs", "because")])
        self.assertEqual(results.suites[0]["machine"], "two")


if __name__ == "__main__":
    unittest.main()
