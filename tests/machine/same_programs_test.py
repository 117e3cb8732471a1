"""What differs between the files of two builds is found: bytes, modes, links, and what only one has."""

import tempfile
import unittest
from pathlib import Path

from same_programs import differing


class Trees(unittest.TestCase):
    def setUp(self):
        place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.one, self.other = place / "one", place / "other"
        for tree in (self.one, self.other):
            (tree / "usr/bin").mkdir(parents=True)
            (tree / "usr/bin/pi").write_bytes(b"program")
            (tree / "usr/bin/agent").symlink_to("pi")

    def test_the_same_is_the_same(self):
        self.assertEqual(differing(self.one, self.other), [])

    def test_other_bytes(self):
        (self.other / "usr/bin/pi").write_bytes(b"Program")
        self.assertEqual(differing(self.one, self.other), ["usr/bin/pi"])

    def test_another_mode(self):
        (self.other / "usr/bin/pi").chmod(0o4755)
        self.assertEqual(differing(self.one, self.other), ["usr/bin/pi"])

    def test_a_link_that_leads_elsewhere_or_is_a_file(self):
        for replace in (lambda link: link.symlink_to("sh"), lambda link: link.write_bytes(b"program")):
            (self.other / "usr/bin/agent").unlink()
            replace(self.other / "usr/bin/agent")
            self.assertEqual(differing(self.one, self.other), ["usr/bin/agent"])

    def test_what_only_one_has(self):
        (self.one / "usr/bin/more").touch()
        (self.other / "usr/lib").symlink_to("lib64")
        self.assertEqual(differing(self.one, self.other), ["usr/bin/more", "usr/lib"])

    def test_of_a_page_of_the_manual_all_but_the_day_of_its_build(self):
        for tree, day, words in ((self.one, "26", "It runs."), (self.other, "27", "It runs.")):
            (tree / "usr/man/man1").mkdir(parents=True)
            (tree / "usr/man/man1/pi.1").write_text(f'.TH "pi" "1" "2026-11-{day}" "pi-agent"\n.P\n{words}\n')
        self.assertEqual(differing(self.one, self.other), [])
        page = self.other / "usr/man/man1/pi.1"
        for other in (page.read_text().replace("runs", "stops"), page.read_text().replace('"1"', '"8"')):
            page.write_text(other)
            self.assertEqual(differing(self.one, self.other), ["usr/man/man1/pi.1"])


if __name__ == "__main__":
    unittest.main()
