"""A sample has its part of the tests, others for another seed, and furnishes a machine for one kind of them."""

import unittest

from sampling import FURNISHED, choose, kind_of

PLAIN = [f"tests/system/test_terminal.py::test_{number}[trixie]" for number in range(2000)]
OF_KIND = {
    "toolchains": "tests/system/test_both_sides.py::test_works_on_both_sides[bookworm-a CMake tree]",
    "engines": "tests/system/test_rendered_engines.py::test_the_jobs_pod_runs_under_podman[bookworm]",
    "docker": "tests/system/test_methods.py::test_the_hosts_view[docker-trixie]",
    "work": "tests/work/test_work.py::test_comes_to_the_same_inside[trixie-docker and podman are no words of its]",
    "podman": "tests/attack/test_podman.py::test_the_hosts_settings[trixie]",
}


class Sampling(unittest.TestCase):
    def test_a_kind_is_known_by_the_name(self):
        self.assertEqual({kind: kind_of(test) for kind, test in OF_KIND.items()}, {kind: kind for kind in FURNISHED})
        self.assertIsNone(kind_of(PLAIN[0]))

    def test_it_is_that_part_and_the_seed_decides_which(self):
        chosen = choose(PLAIN, 0.1, "seed")
        self.assertTrue(150 < len(chosen) < 250, len(chosen))
        self.assertEqual(chosen, choose(PLAIN, 0.1, "seed"))
        self.assertNotEqual(chosen, choose(PLAIN, 0.1, "other"))

    def test_it_has_one_kind_and_each_kind_in_some_sample(self):
        kinds = [{kind_of(test) for test in choose(OF_KIND.values(), 1, str(seed))} for seed in range(100)]
        self.assertTrue(all(len(kind) == 1 for kind in kinds))
        self.assertEqual(set().union(*kinds), set(FURNISHED))


if __name__ == "__main__":
    unittest.main()
