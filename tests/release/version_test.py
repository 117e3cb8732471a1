"""A build has a version or fails, and a release's tag is that version: tried with temporary repositories and broken meson.build files."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
MESON_BUILD = (SOURCE / "meson.build").read_text()
# Nothing of the developer's own git configuration counts, and the commit has an author wherever this runs.
GIT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": "/",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "test"), ("EMAIL", "test@localhost"))},
}


def with_version(version):
    text, count = re.subn(r"\n  version: '[^']*',", f"\n  version: '{version}'," if version is not None else "", MESON_BUILD, count=1)
    assert count == 1
    return text


class Tag(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.source = Path(directory.name)
        (self.source / "meson.build").write_text(with_version("1.20.3"))

    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.source), *arguments], env=GIT, check=True, capture_output=True)

    def commit(self):
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=one")

    def check(self):
        done = subprocess.run([sys.executable, "-B", str(HERE / "check_tag"), str(self.source)], env=GIT, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_tag_that_is_the_version_passes(self):
        self.commit()
        for options in ([], ["--annotate", "--message=release"]):
            self.git("tag", "--force", *options, "v1.20.3")
            self.assertEqual(self.check(), (0, "v1.20.3 is the version of meson.build\n"))

    def test_another_tag_fails_and_both_are_named(self):
        self.commit()
        for tag in ("v1.20.4", "1.20.3", "v1.20.3-rc1", "v1.20.30", "V1.20.3"):
            self.git("tag", tag)
            self.assertEqual(self.check(), (1, f"check_tag: the tag is {tag}, but meson.build says 1.20.3, whose tag is v1.20.3\n"))
            self.git("tag", "--delete", tag)

    def test_no_tag_and_a_tag_of_an_earlier_commit_say_how_to_make_one(self):
        said = "check_tag: the commit that is checked out has no tag; meson.build says 1.20.3, so release it with: git tag v1.20.3\n"
        self.commit()
        self.assertEqual(self.check(), (2, said))
        self.git("tag", "v1.20.3")
        self.git("commit", "--quiet", "--allow-empty", "--message=two")
        self.assertEqual(self.check(), (2, said))

    def test_what_cannot_be_read_is_no_success(self):
        status, said = self.check()
        self.assertEqual(status, 2)
        self.assertIn("not a git repository", said)
        (self.source / "meson.build").write_text(with_version(None))
        self.assertEqual(self.check(), (2, f"check_tag: {self.source}/meson.build: project() has no version\n"))
        (self.source / "meson.build").unlink()
        self.assertEqual(self.check(), (2, f"check_tag: {self.source}/meson.build cannot be read: No such file or directory\n"))

    def test_the_version_of_this_project_is_found(self):
        (self.source / "meson.build").write_text(MESON_BUILD)
        self.commit()
        self.assertRegex(self.check()[1], r"meson\.build says \d+\.\d+\.\d+, so release it")


class Version(unittest.TestCase):
    def test_a_build_without_a_version_of_three_numbers_fails_and_says_so(self):
        for version in (None, "", "1.2", "1.2.3.4", "1.2.x", "1.2.3-rc1", "v1.2.3", "1.02.3", "1..3"):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as directory:
                source = Path(directory)
                (source / "meson.build").write_text(with_version(version))
                (source / "meson_options.txt").write_text((SOURCE / "meson_options.txt").read_text())
                done = subprocess.run(["meson", "setup", source / "build", source], capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f'must be MAJOR.MINOR.PATCH, three numbers, but is "{"undefined" if version is None else version}"', done.stdout)


if __name__ == "__main__":
    unittest.main()
