"""Plays machines and pytests that break in every way: a suite that did not run must never look as if it had passed."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import listing
import suites
from progress import CommandFailed
from recipes import EMULATED, LINTED, MACHINES
from results import Results

REPORT = '<testsuites><testsuite><testcase classname="a" name="b">{0}</testcase></testsuite></testsuites>'


def quiet(act, *arguments, **options):
    with contextlib.redirect_stderr(io.StringIO()), mock.patch.dict(os.environ, PI_AGENT_SEED="1"):
        return act(*arguments, **options)


class OnePytest(unittest.TestCase):
    def counts(self, status, inside=None, only=None):
        """What counts when pytest ends so, with this inside its one case, or without a report."""
        writing = f"open(sys.argv[-1].split('=')[1], 'w').write({REPORT.format(inside)!r});" if inside is not None else ""
        results = Results()
        with mock.patch.object(suites, "pytest", lambda *_: [sys.executable, "-c", f"import sys; {writing} sys.exit({status})"]):
            self.came_to_its_end = quiet(suites.pytest_suite, results, suites.Piece("system", ()), "one", only)
        self.assertEqual(len(results.suites), 1)
        return tuple(results.counts[key] for key in ("passed", "failed", "skipped")), [why for _, _, why in results.notes]

    def test_passes_and_failures_count(self):
        self.assertEqual(self.counts(0, ""), ((1, 0, 0), []))
        self.assertEqual(self.counts(1, '<failure message="why"/>'), ((0, 1, 0), ["why"]))
        self.assertEqual(self.counts(0, '<skipped message="why"/>'), ((0, 0, 1), ["why"]))

    def test_an_end_without_a_report_is_a_failure(self):
        self.assertEqual(self.counts(0)[0], (0, 1, 0))
        self.assertFalse(self.came_to_its_end)

    def test_a_test_of_meson_that_did_not_run_is_a_failure(self):
        class Build:
            def __init__(self, *_, **__):
                self.setup = lambda: None
                self.tests_of = lambda *_: [{"name": "one"}, {"name": "two"}]

            def test(self, suite, selected):
                return log

        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory, "testlog.json")
            for ran, expected in ((["one", "two"], (2, 0)), (["one"], (1, 1))):
                log.write_text("".join(f'{{"name": "pi-agent:lint / {name}", "result": "OK", "returncode": 0}}\n' for name in ran))
                results = Results()
                with mock.patch.object(suites, "Build", Build):
                    self.assertEqual(quiet(suites.meson_suite, results, "lint", "one", None), expected[1] == 0)
                self.assertEqual((results.counts["passed"], results.counts["failed"]), expected)

    def test_no_tests_are_a_failure_unless_some_were_asked_for(self):
        self.assertEqual(self.counts(5), ((0, 1, 0), ["the suite has no tests"]))
        self.assertEqual(self.counts(5, only="x"), ((0, 0, 0), []))

    def test_a_failure_that_is_in_no_report_is_one(self):
        self.assertEqual(self.counts(1, "")[0], (1, 1, 0))
        for status in (1, 2, 3, 137):
            self.assertEqual(self.counts(status)[0], (0, 1, 0))
            self.assertFalse(self.came_to_its_end)


class OneMachine(unittest.TestCase):
    def ran(self, name="trixie", only=None, full=False, broken=()):
        """Results, and the pytest suites that were started, when these variants do not build."""
        started, results = [], Results()

        class Build:
            def __init__(self, _, variant="product", **options):
                self.variant = variant

            def compile(self, everything=False):
                if self.variant in broken:
                    raise CommandFailed("no compiler")

        with (
            mock.patch.object(suites, "Build", Build),
            mock.patch.object(suites, "meson_suite", lambda *_, **variant: None),
            mock.patch.object(suites, "pytest_suite", lambda results, piece, *_: started.append(piece.label)),
        ):
            for part in suites.parts(name, full):
                quiet(suites.PARTS[part], results, name, only, full, (), suites.Unfinished())
        return results, started

    def test_a_product_that_does_not_build_fails_each_suite(self):
        for variant in ("product", "weak"):
            results, started = self.ran(broken=[variant])
            self.assertEqual(started, [])
            self.assertEqual(results.counts, {"passed": 0, "failed": 6, "skipped": 0})

    def test_part_of_the_long_suites_runs_unless_more_or_less_is_asked_for(self):
        with mock.patch.dict("os.environ"):
            os.environ.pop("PI_AGENT_SAMPLE", None)
            self.assertEqual([suites.part_of(suite, None, False) for suite in ("system", "attack", "work")], ["0.05", "0.035", "0.05"])
            self.assertEqual([suites.part_of("attack", "name", False), suites.part_of("attack", None, True)], ["", ""])
            os.environ["PI_AGENT_SAMPLE"] = "0.2"
            self.assertEqual([suites.part_of(suite, None, False) for suite in ("nix", "system", "attack", "bench")], ["", "0.2", "0.2", ""])
            os.environ["PI_AGENT_SAMPLE"] = "1"
            self.assertEqual(suites.part_of("attack", None, False), "")

    def test_the_second_compiler_is_no_reason_to_leave_the_tests_out(self):
        results, started = self.ran(full=True, broken=["clang"])
        of_all = [f"system, {number} of 8" for number in range(1, 9)] + [f"attack, {number} of 4" for number in range(1, 5)]
        self.assertEqual((sorted(started), results.counts["failed"]), (sorted([*of_all, "container", "work", "bench"]), 1))

    def test_what_does_not_build_is_told_once_and_each_piece_of_a_suite_fails(self):
        results, started = self.ran(full=True, broken=["product"])
        self.assertEqual((started, results.counts["failed"]), ([], 1 + 15))

    def test_the_pieces_of_a_suite_are_all_of_its_files_each_once(self):
        self.assertEqual([piece.tests for piece in suites.pieces("system", full=False)], [("tests/system",)])
        for suite in ("system", "attack"):
            files = [file for piece in suites.pieces(suite, full=True) for file in piece.tests]
            self.assertEqual(files, sorted(f"tests/{suite}/{file.name}" for file in (suites.SOURCE / "tests" / suite).glob("test_*.py")))

    def test_suites_that_are_asked_for_run_whole_and_no_other(self):
        self.assertEqual(suites.parts("bookworm", False, ["attack"]), ["booted"])
        self.assertEqual(suites.parts("trixie", False, ["lint"]), [])
        self.assertEqual(suites.parts("bookworm", False, ["static", "system"]), ["unbooted", "booted"])
        self.assertEqual(suites.part_of("attack", None, False, ["attack"]), "")
        self.assertEqual(suites.chosen_from({"lint": 1, "unit": 2}, ["unit"]), {"unit": 2})
        self.assertEqual(suites.chosen_from(["system", "attack"], []), ["system", "attack"])

    def test_every_machine_runs_the_same_tests_but_for_lint_and_emulation(self):
        for name in MACHINES:
            self.assertEqual(suites.pytest_suites(name, full=False), [*(["nix"] if name == LINTED else []), "system", "attack", "container", "work", "bench"])
            self.assertEqual("lint" in suites.meson_suites(name, full=True), name == LINTED)
            self.assertEqual("static" in suites.meson_suites(name, full=True), name == LINTED)
            self.assertNotIn("static", suites.meson_suites(name, full=False))
            self.assertEqual("unit" in suites.meson_suites(name, full=False), name == LINTED)
            self.assertIn("unit", suites.meson_suites(name, full=True))
            for full in (False, True):
                self.assertEqual("fuzz" in suites.meson_suites(name, full), name == LINTED)
            self.assertEqual(suites.parts(name, full=False), [*(["unbooted"] if name == LINTED else []), "booted"])
            self.assertEqual(suites.parts(name, full=True), ["unbooted", "booted", "booted-too"])
            self.assertEqual("emulated" in suites.pytest_suites(name, full=True), name == EMULATED.machine)

    def test_a_list_names_every_suite_with_its_tests(self):
        lines = list(listing.as_text({"one": {"unit": ["a", "b"], "system": []}}))
        self.assertEqual(lines, ["unit on one: 2", "  a", "  b", "system on one: 0"])


if __name__ == "__main__":
    unittest.main()
