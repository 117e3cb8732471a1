"""A picture has the text and the colours of the screen, and the committed ones tell nothing of the host that made them."""

import os
import platform
import re
import unittest
from pathlib import Path
from xml.etree import ElementTree

from terminal_svg import BACKGROUND, PALETTE, PLAIN, drawn, runs_of

PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"
NAMES = ("doctor", "left", "session", "why")
SVG = "{http://www.w3.org/2000/svg}"
# Where the machines of the pictures have files that their commands may show.
PLACES = ("/home/alice/", "/etc/pi-agent/", "/AGENTS.md")


def texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


class Drawing(unittest.TestCase):
    def test_text_stays_text_and_its_colour_is_of_the_screen(self):
        ((first, second),) = runs_of("\x1b[1;31mno\x1b[0m & <yes>")
        self.assertEqual((first[0], first[1].colour, first[1].bold, first[2]), (0, PALETTE[1], True, "no"))
        self.assertEqual((second[0], second[1].colour, second[2]), (2, PLAIN, " & <yes>"))
        self.assertEqual(texts(drawn("\x1b[31mno\x1b[0m & <yes>\n\n\n", "title", 40)), ["title", "no", " & <yes>"])

    def test_indexed_direct_and_reversed_colours(self):
        ((indexed, direct, swapped),) = runs_of("\x1b[38;5;196ma\x1b[38;2;1;2;3mb\x1b[0;7mc")
        self.assertEqual((indexed[1].colour, direct[1].colour, swapped[1].reversed), ("#ff0000", "#010203", True))
        self.assertIn(f'fill="{PLAIN}"/>', drawn("\x1b[7mc", "title", 40))
        self.assertIn(f'fill="{BACKGROUND}">c<', drawn("\x1b[7mc", "title", 40))

    def test_a_link_is_its_text(self):
        self.assertEqual(texts(drawn("\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x1b\\", "title", 40)), ["title", "here"])


class Committed(unittest.TestCase):
    def test_there_is_each(self):
        self.assertEqual(sorted(path.stem for path in PICTURES.iterdir()), sorted(NAMES))

    def test_they_are_small(self):
        self.assertEqual([name for name in NAMES if (PICTURES / f"{name}.svg").stat().st_size > 20_000], [])

    def test_they_name_no_path_and_no_name_of_the_host_that_made_them(self):
        for name in NAMES:
            svg = (PICTURES / f"{name}.svg").read_text()
            for text in texts(svg):
                for path in re.findall(r"(?<![\w.~%])/[\w.-]+[\w./-]*", text):
                    self.assertTrue(path.startswith(PLACES), f"{name}: {path}")
            host = platform.node()
            self.assertFalse(len(host) > 3 and re.search(rf"\b{re.escape(host)}\b", svg), f"{name} names {host}")
            self.assertNotIn(os.path.expanduser("~") + "/", svg)


if __name__ == "__main__":
    unittest.main()
