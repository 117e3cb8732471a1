"""A directory is emptied without being removed: what another process mounted on it, in its own namespace, stays."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from cache import emptied, remove_tree

MOUNTED = ["unshare", "--mount", "--propagation=private", "sh", "-c", 'mount -t tmpfs tmpfs "$1" && echo on && read go && exec mountpoint -q "$1"', "sh"]


class Emptied(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()), "src")

    def stays_mounted(self, change):
        """Whether a mount in another namespace is there after the change."""
        self.place.mkdir()
        with subprocess.Popen([*MOUNTED, self.place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "on\n")
            change(self.place)
            process.communicate("go\n")
        return process.returncode == 0

    def test_files_links_and_directories_go(self):
        (self.place / "below").mkdir(parents=True)
        (self.place / "below/file").touch()
        (self.place / "file").touch()
        (self.place / "link").symlink_to("below")
        self.assertEqual(list(emptied(self.place).iterdir()), [])

    def test_it_is_made(self):
        self.assertTrue(emptied(self.place).is_dir())

    def test_the_mount_of_another_stays(self):
        self.assertTrue(self.stays_mounted(emptied))

    def test_it_does_not_where_the_directory_is_removed(self):
        self.assertFalse(self.stays_mounted(lambda place: (remove_tree(place), place.mkdir())))


if __name__ == "__main__":
    unittest.main()
