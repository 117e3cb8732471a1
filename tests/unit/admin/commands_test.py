"""The commands of admin/commands.toml against the program, its manual and the pages: former names work, and stand nowhere else.

Usage: commands_test.py PROGRAM plain|sanitized [options of unittest]
"""

import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[3]
TABLE = tomllib.loads((SOURCES / "admin/commands.toml").read_text())
SHOWN = [row["name"] for row in TABLE["command"] if not row.get("hidden")]
FORMER = {row["name"]: row for row in TABLE["former"]}
PAGE = SOURCES / "docs/reference/pi-agentctl.md"
MANUAL = SOURCES / "man/pi-agentctl.8.scd"


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


class Commands(unittest.TestCase):
    def test_a_former_name_is_no_command_and_stands_for_one(self):
        for name, row in FORMER.items():
            self.assertNotIn(name, SHOWN)
            self.assertTrue(any(row["now"].startswith(shown) for shown in [*SHOWN, "--version"]), row)

    def test_a_former_name_does_what_the_new_one_does_after_one_line(self):
        for name, row in FORMER.items():
            words = [row["argument"]] if "argument" in row else []
            acting = (words, [*words, "--quiet"], [*words, *"several words more".split()])
            # A program that bounds its own memory cannot run with AddressSanitizer, so there it only parses; a machine has the rest
            # (tests/system/test_former_names.py).
            for more in ([*words, "--help"], [*words, "--no-such-option"], *(() if BUILD == "sanitized" else acting)):
                with self.subTest(name=name, more=more):
                    old, new = run(name, *more), run(*row["now"].split(), *more)
                    line = f"pi-agentctl: '{name}' is now '{row['told']}'\n"
                    self.assertEqual((old.returncode, old.stdout, old.stderr), (new.returncode, new.stdout, line + new.stderr))

    def test_what_a_former_name_could_not_do_without_it_still_cannot(self):
        for name in (name for name, row in FORMER.items() if "argument" in row):
            self.assertEqual(run(name).returncode, 64)

    def test_help_and_completion_have_the_commands_and_no_former_name(self):
        shown = re.findall(r"^  (\w[\w-]*) ", run("--help").stdout.partition("Subcommands:\n")[2], re.MULTILINE)
        completed = [line.split("\t")[0] for line in run("complete", "").stdout.splitlines()]
        self.assertEqual(shown, [name for name in SHOWN if " " not in name])
        self.assertEqual(completed, shown)
        below = [line.split("\t")[0] for line in run("complete", "user", "").stdout.splitlines()]
        self.assertEqual(below, ["add", "remove", "prune"])
        self.assertFalse(set(FORMER) & set(re.findall(r"^  +([\w-]+) ", run("--help-all").stdout, re.MULTILINE)) - {"prune"})

    def test_the_manual_has_each_command_and_no_former_name(self):
        written = set(re.findall(r"^\*([a-z][a-z -]*)\*", MANUAL.read_text(), re.MULTILINE))
        for name in SHOWN:
            self.assertTrue(name in written or any(other.startswith(name + " ") for other in written), name)
        self.assertFalse(set(FORMER) & written)

    def test_one_page_has_the_former_names(self):
        rows = "".join(f"| `{name}` | `{row['told']}` |\n" for name, row in FORMER.items())
        self.assertTrue(PAGE.read_text().endswith("| former | now |\n| --- | --- |\n" + rows), rows)

    def test_no_file_tells_anybody_to_type_a_former_name(self):
        typed = re.compile(r"pi-agentctl (" + "|".join(FORMER) + r")\b(?! \w+_)")
        for place in ("README.md", "admin", "common", "completions", "data", "debian", "docs", "fetch", "gate", "man", "nix", "runner", "wrapper"):
            files = [SOURCES / place] if (SOURCES / place).is_file() else (SOURCES / place).rglob("*")
            for file in (file for file in files if file.is_file() and file.suffix not in {".gz", ".toml"}):
                self.assertIsNone(typed.search(file.read_text(errors="replace")), file)


PROGRAM = sys.argv.pop(1)
BUILD = sys.argv.pop(1)

if __name__ == "__main__":
    unittest.main()
