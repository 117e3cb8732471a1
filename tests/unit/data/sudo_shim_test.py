"""The agent's sudo as a plain program, in dash and in bash: data/shims/sudo."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SHIM = Path(__file__).resolve().parents[3] / "data/shims/sudo"
DISPATCH = "# rootless: sudo is a no-op shim; running as agent\n"
SHELLS = ("/bin/dash", "/bin/bash --posix")
# Prints its arguments and what the test asks for of its environment, each ended by NUL.
PROBE = """#!/bin/sh
printf '%s\\0' "$@"
printf 'WORD=%s\\0' "${WORD-none}"
"""


class Shim(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.program("probe", PROBE)

    def program(self, name, text, mode=0o755):
        path = self.place / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def sudo(self, *arguments, **variables):
        """What it does in each shell, which must be the same: status, output, messages."""
        environment = {"PATH": f"{self.place}:/usr/bin:/bin", "USER": "agent", **variables}
        seen = []
        for shell in SHELLS:
            done = subprocess.run([*shell.split(), SHIM, *arguments], env=environment, cwd=self.place, input=b"", capture_output=True)
            seen.append((done.returncode, done.stdout.decode(), done.stderr.decode()))
        self.assertEqual(seen[0], seen[1], arguments)
        return seen[0]

    def runs(self, *options, word="none"):
        for command in (("probe", "a b", "-u", "*"), (str(self.place / "probe"), "", "--")):
            given = "".join(f"{argument}\0" for argument in (*command[1:], f"WORD={word}"))
            self.assertEqual(self.sudo(*options, *command), (0, given, DISPATCH), options)

    def refuses(self, message, *arguments):
        self.assertEqual(self.sudo(*arguments), (1, "", f"sudo: {message}\n"), arguments)

    def test_it_runs_the_command_and_says_so(self):
        self.runs()

    def test_options_that_mean_nothing_here_are_dropped(self):
        for options in ("-E", "--preserve-env", "--preserve-env=A,B", "-n", "-S", "-k", "-K", "-v", "--non-interactive", "--stdin",
                        "--reset-timestamp", "--remove-timestamp", "--validate", "-H", "--set-home", "-A", "--askpass", "-P",
                        "--preserve-groups", "-B", "--bell", "-N", "--no-update", "--", "-n --", "-nE", "-EnH", "-kS -A"):  # fmt: skip
            self.runs(*options.split())

    def test_options_with_a_value_take_it_along(self):
        for options in (["-p", "Pass word: "], ["-pP"], ["-p", ""], ["-p", "-u"], ["--prompt=P"], ["--prompt", "P"], ["-nEp", "P"],
                        ["-nEpP"], ["-C", "3"], ["-C3"], ["--close-from=3"], ["-h", "host"], ["-hhost"], ["-nh", "host"],
                        ["--host=host"], ["--host", "host"], ["-U", "name"], ["--prompt="]):  # fmt: skip
            self.runs(*options)

    def test_assignments_become_environment(self):
        self.runs("WORD=x", word="x")
        self.runs("-n", "WORD=a b\n*", "-E", "OTHER=", word="a b\n*")
        self.assertEqual(self.sudo("--", "WORD=x")[0], 127)
        self.assertIn("sudo: 9A=x: command not found", self.sudo("9A=x")[2])
        self.assertEqual(self.sudo("WORD=x")[0], 1)

    def test_switching_users_is_refused(self):
        for form in ("-u root", "-uroot", "--user=root", "--user root", "-nu root", "-Euroot", "-u", "--user", "-E -u #0", "A=b -u x"):
            self.refuses("user switching not supported in rootless mode", *form.split(), "probe")
            self.refuses("user switching not supported in rootless mode", *form.split())

    def test_switching_groups_is_refused(self):
        for form in ("-g root", "-groot", "--group=root", "--group root", "-ng root", "-Eg0", "-g"):
            self.refuses("group switching not supported in rootless mode", *form.split(), "probe")

    def test_interactive_shells_are_refused(self):
        for form in ("-i", "-s", "--login", "--shell", "-nEi", "-sH", "-n -s"):
            self.refuses("interactive shells not supported in rootless mode", *form.split(), "probe")
            self.refuses("interactive shells not supported in rootless mode", *form.split())

    def test_what_would_do_something_else_is_refused(self):
        for options, what in (("-b", "running in the background (-b)"), ("--background", "running in the background (-b)"),
                              ("-D /", "changing the directory (-D)"), ("--chdir=/", "changing the directory (-D)"),
                              ("-R /", "changing the root directory (-R)"), ("--chroot=/", "changing the root directory (-R)"),
                              ("-T 5", "a time limit (-T)"), ("--command-timeout=5", "a time limit (-T)"),
                              ("-e", "editing files (-e)"), ("--edit", "editing files (-e)"),
                              ("-r x", "security contexts (-r, -t)"), ("--type=x", "security contexts (-r, -t)")):  # fmt: skip
            self.refuses(f"{what} not supported in rootless mode", *options.split(), "probe")

    def test_sudoedit_is_refused(self):
        link = self.place / "sudoedit"
        link.symlink_to(SHIM)
        done = subprocess.run([link, "file"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "sudo: editing files (-e) not supported in rootless mode\n"))

    def test_usage_errors(self):
        for arguments, message in (("", ""), ("-E", ""), ("--", ""), ("A=b", ""), ("-Z probe", "sudo: invalid option -- 'Z'\n"),
                                   ("-nZ probe", "sudo: invalid option -- 'Z'\n"), ("--nothing probe", "sudo: unrecognized option '--nothing'\n"),
                                   ("--stdin=x probe", "sudo: option '--stdin' doesn't allow an argument\n"),
                                   ("-p", "sudo: option requires an argument -- 'p'\n"),
                                   ("--prompt", "sudo: option '--prompt' requires an argument\n")):  # fmt: skip
            status, out, said = self.sudo(*arguments.split())
            self.assertEqual((status, out), (1, ""), arguments)
            self.assertTrue(said.startswith(message + "usage: sudo "), said)

    def test_what_needs_no_command(self):
        for arguments in ("-v", "-k", "-K", "-nv", "-n -v", "--validate", "-k --"):
            self.assertEqual(self.sudo(*arguments.split()), (0, "", ""), arguments)
        for arguments in ("-h", "--help", "-nh", "-h -n"):
            status, out, said = self.sudo(*arguments.split())
            self.assertEqual((status, out[:12], said), (0, "usage: sudo ", ""), arguments)
        for arguments in ("-V", "--version", "-nV"):
            self.assertEqual(self.sudo(*arguments.split()), (0, "sudo: no-op shim of pi-agent (rootless)\n", ""))
        for arguments in ("-l", "-nl", "--list", "-ll", "-l -U root"):
            expected = "rootless: sudo is a no-op shim; it runs any command, as agent and nobody else\n"
            self.assertEqual(self.sudo(*arguments.split()), (0, expected, ""), arguments)
        self.assertEqual(self.sudo("-l", "probe"), (0, f"{self.place}/probe\n", ""))
        self.assertEqual(self.sudo("-nl", "nothing"), (1, "", ""))

    def test_the_status_is_that_of_the_command(self):
        for status in (0, 1, 7, 126, 127, 255):
            self.assertEqual(self.sudo("sh", "-c", f"exit {status}"), (status, "", DISPATCH))
        self.assertEqual(self.sudo("sh", "-c", "kill -TERM $$")[0], -15)

    def test_what_cannot_be_run(self):
        self.program("text", "no program", mode=0o644)
        (self.place / "directory").mkdir()
        for name, status, why in (("nothing", 127, "command not found"), ("./nothing", 127, "command not found"), ("", 127, "command not found"),
                                  ("cd", 127, "command not found"), ("directory", 127, "command not found"),
                                  ("text", 126, "Permission denied"), ("./text", 126, "Permission denied"),
                                  ("./directory", 126, "Is a directory"), ("/", 126, "Is a directory"),
                                  ("a\nb", 127, "command not found"), ("-", 127, "command not found")):  # fmt: skip
            self.assertEqual(self.sudo("--", name), (status, "", f"sudo: {name}: {why}\n"), name)

    def test_odd_names(self):
        for name in ("a b", "a\nb", "-u", "--", "*", "$HOME", "'", "a=b", "é", "-n"):
            self.program(name, PROBE)
            self.assertEqual(self.sudo("--", name, "x"), (0, "x\0WORD=none\0", DISPATCH), name)

    def test_a_later_program_of_the_path_is_found(self):
        first = self.place / "first"
        first.mkdir()
        (first / "probe").write_text("not executable")
        (first / "other").mkdir()
        self.program("other", PROBE)
        for name in ("probe", "other"):
            self.assertEqual(self.sudo(name, PATH=f"{first}:{self.place}:/bin")[0], 0)
        self.assertEqual(self.sudo("probe", PATH="/usr/bin:")[0], 0)  # an empty entry is the working directory

    def test_a_path_that_is_not_sane_hinders_only_the_command(self):
        self.assertEqual(self.sudo(f"{self.place}/probe", "x", PATH="/nowhere"), (0, "x\0WORD=none\0", DISPATCH))
        self.assertEqual(self.sudo("probe", PATH="/nowhere"), (127, "", "sudo: probe: command not found\n"))

    def test_the_name_without_variables_is_that_of_the_account(self):
        name = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout
        done = subprocess.run([SHIM, "/bin/true"], env={}, capture_output=True, text=True)
        self.assertEqual(done.stderr, f"# rootless: sudo is a no-op shim; running as {name}")

    def test_the_environment_arrives_whole(self):
        theirs = {"name": "1", "value": "a b", "rest": "a:b", "letters": "*", "found": "/"}
        script = 'printf "%s," "$name" "$value" "$rest" "$letters" "$found"; env | grep -c _sudo_'
        self.assertEqual(self.sudo("sh", "-c", script, **theirs)[1], "1,a b,a:b,*,/,0\n")


if __name__ == "__main__":
    os.environ.pop("ENV", None)
    unittest.main()
