"""Plays runs that are interrupted: what ended is kept once, what did not runs again, and nothing of one commit counts for another."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import unfinished
from results import Results


class Runs(unittest.TestCase):
    def setUp(self):
        cache = Path(self.enterContext(tempfile.TemporaryDirectory()), "not there yet")
        self.enterContext(mock.patch.multiple(unfinished, CACHE=cache, DIRECTORY=cache / "unfinished"))
        self.enterContext(mock.patch.object(unfinished.fcntl, "flock", lambda *_: None))  # each part is a process of its own
        self.checkout = "0123"
        self.enterContext(mock.patch.object(unfinished.assurance, "commit", lambda: self.checkout))
        self.changed = "M\ttests/system/test_sync.py\n"
        self.enterContext(mock.patch.object(unfinished.assurance, "git", lambda *_: self.changed))
        self.enterContext(mock.patch.dict(os.environ, PI_AGENT_SEED="5"))
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        self.ran = []

    def suite(self, name, outcome="passed", came_to_its_end=True):
        """A suite of one case, which notes that it ran."""

        def act(results):
            self.ran.append(name)
            with results.suite(name, "one"):
                results.add(outcome, name, "why")
            return came_to_its_end

        return act

    def run_of(self, run, **suites):
        results = Results()
        for name, act in suites.items():
            run.once(results, name, act)
        return results

    def test_what_came_to_its_end_is_not_run_again_and_counts_all_the_same(self):
        suites = {"a": self.suite("a"), "b": self.suite("b", "failed"), "c": self.suite("c", "failed", came_to_its_end=False)}
        first = self.run_of(unfinished.begin("0123", goes_on=False), **suites)
        os.environ["PI_AGENT_SEED"] = "6"
        second = self.run_of(unfinished.begin("0123", goes_on=True), **suites)
        self.assertEqual(self.ran, ["a", "b", "c", "c"])
        self.assertEqual(first.counts, {"passed": 1, "skipped": 0, "failed": 2})
        self.assertEqual((second.counts, second.notes, len(second.suites)), (first.counts, first.notes, 3))
        self.assertEqual(os.environ["PI_AGENT_SEED"], "5")

    def test_what_raises_is_not_kept(self):
        run = unfinished.begin("0123", goes_on=False)
        with self.assertRaises(SystemExit):
            run.once(Results(), "a", lambda _: exit(143))
        self.run_of(run, a=self.suite("a"))
        self.assertEqual(self.ran, ["a"])

    def test_what_ran_while_the_checkout_was_changed_is_not_kept(self):
        run = unfinished.begin("0123", goes_on=False)
        self.checkout += " with changes that are not committed"
        self.run_of(run, a=self.suite("a"))
        self.checkout = "0123"
        self.run_of(run, a=self.suite("a"))
        self.assertEqual(self.ran, ["a", "a"])

    def test_a_second_run_does_not_begin_beside_the_first(self):
        with mock.patch.object(unfinished.fcntl, "flock", mock.Mock(side_effect=BlockingIOError)), self.assertRaisesRegex(BlockingIOError, "another --full"):
            unfinished.begin("0123", goes_on=False)

    def test_each_part_has_a_beginning(self):
        self.assertEqual(len(unfinished.begin("0123", goes_on=False).beginnings()), 1)
        self.assertEqual(len(unfinished.begin("0123", goes_on=True).beginnings()), 2)
        self.assertEqual(len(unfinished.begin("0123", goes_on=False).beginnings()), 1)

    def pieces_after_a_change(self, tests):
        """Runs lint and each piece at one commit and goes on at another; tells what ran then, and the run."""
        suites = {f"{name} on one": self.suite(name) for name in ("lint", *tests)}
        self.run_of(unfinished.begin("0123", goes_on=False), **suites)
        self.ran, self.checkout = [], "4567"
        run = unfinished.begin("4567", goes_on=True, tests=tests)
        self.run_of(run, **suites)
        return self.ran, run

    def test_after_a_change_of_tests_what_they_are_part_of_runs_again_and_lint(self):
        tests = {"a": ("tests/system/test_sync.py", "tests/system/test_ctl.py"), "b": ("tests/system/test_ctl.py",), "c": ("tests/system",)}
        ran, run = self.pieces_after_a_change(tests)
        self.assertEqual(ran, ["lint", "a", "c"])
        self.assertEqual(run.changes(), ["tests/system/test_sync.py changed since 0123: a, c, lint ran again"])
        self.ran = []
        self.run_of(unfinished.begin("4567", goes_on=True), **{"a on one": self.suite("a")})
        self.assertEqual(self.ran, [])

    def test_what_imports_from_a_changed_test_runs_again(self):
        self.changed = "M\ttests/attack/test_inside.py\n"
        ran, _ = self.pieces_after_a_change({"a": ("tests/attack/test_netlink.py",), "b": ("tests/attack/test_record.py",)})
        self.assertEqual(ran, ["lint", "a"])

    def test_what_imports_from_another_test_of_that_name_does_not(self):
        """tests/attack/test_gate_taken_over.py imports from the test_gate.py beside it."""
        tests = {"a": ("tests/attack/test_gate_taken_over.py",), "b": ("tests/system/test_gate.py",)}
        for directory, ran_again in (("system", ["b"]), ("attack", ["a"])):
            self.changed = f"M\ttests/{directory}/test_gate.py\n"
            with self.subTest(directory):
                ran, _ = self.pieces_after_a_change(tests)
                self.assertEqual(ran, ["lint", *ran_again])
            self.checkout, self.ran = "0123", []

    def test_what_runs_a_changed_program_in_a_machine_runs_again(self):
        tests = {"a": ("tests/attack/test_bus.py",), "b": ("tests/attack/test_descriptors_held.py",), "c": ("tests/attack/test_record.py",)}
        # client.py is imported by what target.py has every attack begin with.
        for program, ran_again in (("bus", ["a", "b"]), ("client", ["a", "b", "c"]), ("nobodys", [])):
            self.changed = f"M\ttests/attack/inside/{program}.py\n"
            with self.subTest(program):
                ran, _ = self.pieces_after_a_change(tests)
                self.assertEqual(ran, ["lint", *ran_again])
            self.checkout, self.ran = "0123", []

    def test_what_reads_all_tests_beside_a_changed_one_runs_again(self):
        self.changed = "M\ttests/attack/test_record.py\n"
        ran, _ = self.pieces_after_a_change({"a": ("tests/attack/test_seams.py",), "b": ("tests/attack/test_netlink.py",)})
        self.assertEqual(ran, ["lint", "a"])

    def test_after_a_change_of_unit_tests_they_run_again_and_what_reads_their_data(self):
        self.changed = "M\ttests/unit/data/broken_rules.txt\n"
        tests = {"a": ("tests/system/test_policy_schema.py",), "b": ("tests/system/test_kubernetes_types.py",), "c": ("tests/system/test_sync.py",)}
        unit = {"unit on one": self.suite("unit")}
        self.run_of(unfinished.begin("0123", goes_on=False), **unit)
        self.checkout = "4567"
        run = unfinished.begin("4567", goes_on=True, tests=tests)
        self.run_of(run, **unit)
        self.assertEqual(self.ran, ["unit", "unit"])
        self.assertEqual(run.changes(), ["tests/unit/data/broken_rules.txt changed since 0123: a, b, lint, unit ran again"])

    def test_after_a_change_of_a_unit_test_its_neighbours_data_is_as_it_was(self):
        self.changed = "M\ttests/unit/admin/agents/take_over_test.cpp\n"
        ran, _ = self.pieces_after_a_change({"a": ("tests/system/test_policy_schema.py",), "unit": ()})
        self.assertEqual(ran, ["lint", "unit"])

    def test_after_a_change_of_a_bench_the_benches_run_again(self):
        for file in ("launch", "sync_measure.py", "sync_driver.cpp"):
            self.changed = f"M\ttests/bench/{file}\n"
            with self.subTest(file):
                ran, _ = self.pieces_after_a_change({"a": ("tests/system/test_sync.py",), "bench": ("tests/bench",)})
                self.assertEqual(ran, ["lint", "bench"])
            self.checkout, self.ran = "0123", []
        self.changed = "M\ttests/bench/meson.build\n"
        with self.assertRaisesRegex(ValueError, "more than tests"):
            self.pieces_after_a_change({})

    def test_after_a_change_of_a_fuzzer_the_fuzzers_run_again(self):
        self.changed = "M\ttests/fuzz/fuzzing.py\n"
        ran, _ = self.pieces_after_a_change({"a": ("tests/system/test_sync.py",), "unit": (), "fuzz": ()})
        self.assertEqual(ran, ["lint", "fuzz"])

    def test_sources_of_the_same_programs_are_compiled_again_and_read_where_their_words_changed(self):
        self.changed = "M\tadmin/host/place.cpp\nA\ttests/lint/new.py\n"
        tests = {"a": ("tests/attack/test_seams.py",), "b": ("tests/system/test_sync.py",), "unit": (), "static": (), "fuzz": ()}
        sources = {"0123": 'fault_point("one"); // "two', "the same": '#include "place.hpp"\nfault_point("one");', "another": 'fault_point("other");'}
        for text, read in (("the same", []), ("another", ["a"])):
            answers = {"diff": self.changed, "0123:admin/host/place.cpp": sources["0123"], "4567:admin/host/place.cpp": sources[text]}
            with self.subTest(text), mock.patch.object(unfinished.assurance, "git", lambda *asked, known=answers: known.get(asked[0]) or known[asked[1]]):
                with mock.patch.object(unfinished.same_programs, "programs_that_differ", return_value=[]) as compared:
                    ran, run = self.pieces_after_a_change(tests)
                compared.assert_called_once_with("0123")
                self.assertEqual(ran, ["lint", *read, "unit", "static", "fuzz"])
                self.assertIn("admin/host/place.cpp, tests/lint/new.py changed since 0123", run.changes()[0])
            self.checkout = "0123"

    def test_after_sources_of_other_programs_no_run_goes_on(self):
        self.changed = "M\tadmin/host/place.cpp\n"
        unfinished.begin("0123", goes_on=False)
        with mock.patch.object(unfinished.same_programs, "programs_that_differ", return_value=["usr/bin/pi on trixie"]):
            with self.assertRaisesRegex(ValueError, "are not those of 0123: usr/bin/pi on trixie"):
                unfinished.begin("4567", goes_on=True)
        self.assertEqual(os.listdir(unfinished.DIRECTORY), ["0123"])

    def test_a_change_is_noted_before_anything_is_forgotten(self):
        self.run_of(unfinished.begin("0123", goes_on=False), **{"lint on one": self.suite("lint")})
        with mock.patch.object(unfinished.Path, "unlink", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            unfinished.begin("4567", goes_on=True)
        self.assertIn("changed since 0123", unfinished.begin("4567", goes_on=True).changes()[0])

    def test_after_a_change_of_more_no_run_goes_on(self):
        for change in ("A\trunner/root/new.cpp", "M\tmeson.build", "M\ttests/conftest.py", "A\ttests/system/test_new.py", "D\ttests/system/test_sync.py", "M\tdocs/README.md"):
            self.changed = f"M\ttests/system/test_sync.py\n{change}\n"
            unfinished.begin("0123", goes_on=False)
            with self.subTest(change), self.assertRaisesRegex(ValueError, f"more than tests and sources changed since 0123: {change}"):
                unfinished.begin("4567", goes_on=True)

    def test_only_a_run_of_a_commit_goes_on(self):
        with self.assertRaisesRegex(FileNotFoundError, "no interrupted run of 4567"):
            unfinished.begin("4567", goes_on=True)
        with self.assertRaisesRegex(ValueError, "is not one: 0123 with changes"):
            unfinished.begin("0123 with changes that are not committed", goes_on=True)
        unfinished.begin("0123", goes_on=False)
        unfinished.begin("4567", goes_on=False)
        self.assertEqual(os.listdir(unfinished.DIRECTORY), ["4567"])  # one run is kept, not one of each commit

    def test_a_run_that_ended_is_forgotten(self):
        unfinished.begin("0123", goes_on=False).remove()
        with self.assertRaises(FileNotFoundError):
            unfinished.begin("0123", goes_on=True)

    def test_without_a_commit_nothing_is_kept(self):
        run = unfinished.begin("0123 with changes that are not committed", goes_on=False)
        self.run_of(run, a=self.suite("a"))
        self.run_of(run, a=self.suite("a"))
        run.remove()
        self.assertEqual((self.ran, len(run.beginnings())), (["a", "a"], 1))
        self.assertFalse(unfinished.DIRECTORY.exists())


if __name__ == "__main__":
    unittest.main()
