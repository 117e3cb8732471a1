"""Shows what root_lines.py counts: files with code in the program, the headers that they include, and nothing of rooms that gave root up."""

import unittest

import root_lines

LISTING = """
CU: ../src/runner/a.cpp:
a.cpp                                          2              0x6140               x
b.cpp                                          -              0x6145

b.cpp                                          3                   0               x
b.cpp                                          3                 0x3               x
b.cpp                                          9              0x1e48               x
"""
SECTIONS = """
  [ 5] .rodata           PROGBITS        0000000000004000 004000 000017 00   A  0   0  4
  [12] .init             PROGBITS        0000000000006000 006000 000017 00  AX  0   0  4
  [15] .text             PROGBITS        0000000000006100 006100 37c342 00  AX  0   0 16
"""
TREE = {
    "runner/root/door/a.cpp": '#include "runner/root/door/a.hpp"\n#include <array>\n',
    "runner/root/door/a.hpp": '#include "common/base/text.hpp"\n#include "runner/as_user/reader.hpp"\n',
    "common/base/text.hpp": "",
    "common/base/text.cpp": "",
    "runner/as_user/reader.hpp": '#include "common/base/fd.hpp"\n',
    "common/base/fd.hpp": "",
    "runner/as_agent/writer.cpp": "",
}


class RootLines(unittest.TestCase):
    def test_what_the_linker_threw_away_is_at_no_address(self):
        self.assertEqual(root_lines.addresses_of(LISTING, SECTIONS), [0x6140, 0x6145])

    def test_one_line_that_two_functions_share_is_no_code_of_a_file(self):
        places = ["a.cpp:2", "a.cpp:2 (discriminator 3)", "b.cpp:3", "b.cpp:9"]
        self.assertEqual(root_lines.files_with_code(places), ["b.cpp"])

    def test_headers_come_with_their_sources_and_as_user_and_as_agent_stay_out(self):
        found = root_lines.with_headers(["runner/root/door/a.cpp", "runner/as_agent/writer.cpp"], TREE.get)
        self.assertEqual(found, {"runner/root/door/a.cpp", "runner/root/door/a.hpp", "common/base/text.hpp"})


if __name__ == "__main__":
    unittest.main()
