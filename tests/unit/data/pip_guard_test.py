"""The guards that keep PIP_USER=1 out of virtual environments: data/bash_env.sh and data/defaults/.bashrc, with a venv of Python's own."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "data"
# Stands for pip in the venv and outside: says which one it is and what pip would see.
PIP = '#!/bin/sh\necho "$(basename "$(dirname "$(dirname "$0")")") ${PIP_USER-unset}"\n'
ACTIVATE = ". venv/bin/activate"


class Place(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.place = Path(place.name)
        for name in ("venv", "second"):
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.place / name], check=True)
        for name in ("venv", "second", "system"):
            (cls.place / name / "bin").mkdir(parents=True, exist_ok=True)
            for program in ("pip", "pip3", "python", "python3"):
                path = cls.place / name / "bin" / program
                path.unlink(missing_ok=True)
                path.write_text(PIP)
                path.chmod(0o755)
        (cls.place / "Makefile").write_text("all:\n\t@pip install x\n")


class Scripts(Place):
    def bash(self, script, options=(), program="bash", **variables):
        """Output and messages of a script under BASH_ENV."""
        environment = {"PATH": f"{self.place}/system/bin:/usr/bin:/bin", "BASH_ENV": str(DATA / "bash_env.sh"), "PIP_USER": "1", **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run([program, *options, "-c", script], env=environment, cwd=self.place, capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_pip_in_an_activated_venv_sees_no_pip_user(self):
        for call in ("pip install x", "pip3 install x", "python -m pip install x", "python3 -m pip install x", "command pip install x",
                     "exec pip install x", "env pip install x", "sh -c 'pip install x'", "bash -c 'python -m pip install x'",
                     "bash -eu -c 'pip install x'", "(pip install x)", "$(type -P pip) install x", "venv/bin/pip install x",
                     "xargs pip install </dev/null"):  # fmt: skip
            self.assertEqual(self.bash(f"{ACTIVATE} && {call}"), "venv unset\n", call)

    def test_without_the_guard_it_would(self):
        self.assertEqual(self.bash(f"{ACTIVATE} && pip install x", BASH_ENV=None), "venv 1\n")

    def test_outside_a_venv_nothing_changes(self):
        for call in ("pip install x", "python3 -m pip install x", "hash -r; pip install x", "hash pip; bash -c 'pip install x'"):
            self.assertEqual(self.bash(call), "system 1\n", call)

    def test_leaving_a_venv_brings_it_back(self):
        self.assertEqual(self.bash(f"{ACTIVATE}; pip; deactivate; pip"), "venv unset\nsystem 1\n")
        self.assertEqual(self.bash(f"{ACTIVATE}; . second/bin/activate; pip; deactivate; pip"), "second unset\nsystem 1\n")
        self.assertEqual(self.bash(f"{ACTIVATE}; {ACTIVATE}; pip; deactivate; pip; {ACTIVATE}; pip"), "venv unset\nsystem 1\nvenv unset\n")
        self.assertEqual(self.bash(f"({ACTIVATE}; pip); pip"), "venv unset\nsystem 1\n")

    def test_the_choice_of_a_script_is_left_alone(self):
        for choice in ("0", "yes", "true", ""):
            self.assertEqual(self.bash(f"{ACTIVATE}; pip; deactivate; pip", PIP_USER=choice), f"venv {choice}\nsystem {choice}\n")
        self.assertEqual(self.bash(f"{ACTIVATE}; pip; deactivate; pip", PIP_USER=None), "venv unset\nsystem unset\n")
        self.assertEqual(self.bash(f"{ACTIVATE}; export PIP_USER=1; hash -r; pip; deactivate; pip"), "venv 1\nsystem 1\n")
        self.assertEqual(self.bash(f"{ACTIVATE}; export PIP_USER=0; deactivate; pip"), "system 0\n")

    def test_a_venv_that_is_active_already(self):
        venv = {"VIRTUAL_ENV": f"{self.place}/venv", "PATH": f"{self.place}/venv/bin:/usr/bin:/bin"}
        self.assertEqual(self.bash("pip install x", **venv), "venv unset\n")
        self.assertEqual(self.bash("pip install x", VIRTUAL_ENV=f"{self.place}/venv"), "system 1\n")  # named, but not on PATH

    def test_strict_scripts_run_as_before(self):
        for options in (["-eu"], ["-euo", "pipefail"], ["-f"], ["-T"], ["-a"], ["-E"]):
            self.assertEqual(self.bash(f"trap 'echo trapped' ERR; {ACTIVATE}; pip; deactivate; pip; echo $?", options), "venv unset\nsystem 1\n0\n")
            self.assertEqual(self.bash("echo ran", options, PATH=None, PIP_USER=None), "ran\n")
        self.assertEqual(self.bash("set -e; hash no-such-program 2>/dev/null; echo went on"), "")
        self.assertEqual(self.bash("hash no-such-program 2>/dev/null || echo missing; hash sh && echo found"), "missing\nfound\n")

    def test_scripts_may_use_these_names_otherwise(self):
        self.assertEqual(self.bash('pip() { echo "own $*"; }; export -f pip; pip a; bash -c "pip b"'), "own a\nown b\n")
        self.assertEqual(self.bash(f'hash() {{ echo "own $*"; }}; hash a; {ACTIVATE} >/dev/null; pip; echo $?'), "own a\nvenv 1\n0\n")
        self.assertEqual(self.bash("command -v pip python3"), f"{self.place}/system/bin/pip\n{self.place}/system/bin/python3\n")
        self.assertEqual(self.bash("command -v no-such-pip || echo none"), "none\n")

    def test_reading_it_is_silent_and_leaves_only_its_functions(self):
        script = "compgen -v; compgen -A function; set +o; shopt"
        without = set(self.bash(script, BASH_ENV="/dev/null").splitlines())
        self.assertEqual(set(self.bash(script).splitlines()) - without - {"PIPESTATUS"}, {"hash", "_pip_user_venv_guard"})

    def test_what_does_not_read_it(self):
        """dash knows no BASH_ENV, nor does bash under the name sh."""
        self.assertEqual(self.bash(f"{ACTIVATE} && pip install x", program="dash"), "venv 1\n")
        self.assertEqual(self.bash("venv/bin/pip install x"), "venv 1\n")  # not activated


class Interactive(Place):
    """The same venvs, line by line at a prompt under the seeded .bashrc."""

    def bash(self, lines, rc="", options=(), **variables):
        """What an interactive bash printed for each line."""
        (self.place / "rc").write_text(f"PS1=; PS2=\n{rc}\n. {DATA}/defaults/.bashrc\n")
        environment = {"PATH": f"{self.place}/system/bin:/usr/bin:/bin", "PIP_USER": "1", "HISTFILE": "", "VIRTUAL_ENV_DISABLE_PROMPT": "1", **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        command = ["bash", "--rcfile", "rc", "--noediting", *options, "-i"]
        done = subprocess.run(command, input=lines + "\n", env=environment, cwd=self.place, capture_output=True, text=True, start_new_session=True)
        said = [line for line in done.stderr.splitlines() if not re.search(r"terminal process group|no job control|^exit$|^\(\w+\) ?$", line)]
        return done.stdout + "\n".join(said)

    def test_pip_in_an_activated_venv_sees_no_pip_user(self):
        for call in ("pip install x", "python3 -m pip install x", "command pip install x", "make -s", "sh -c 'pip install x'"):
            if call == "make -s" and not any(os.access(f"{place}/make", os.X_OK) for place in ("/usr/bin", "/bin")):
                continue
            self.assertEqual(self.bash(f"{ACTIVATE}\n{call}"), "venv unset\n", call)
            self.assertEqual(self.bash(f"{ACTIVATE} && {call}"), "venv unset\n", call)

    def test_without_the_guard_it_would(self):
        self.assertEqual(self.bash(f"unset PROMPT_COMMAND; unset -f hash\n{ACTIVATE}\npip"), "venv 1\n")

    def test_the_prompt_alone_suffices(self):
        self.assertEqual(self.bash("unset -f hash\nexport VIRTUAL_ENV=/venv\npip\nunset VIRTUAL_ENV\npip"), "system unset\nsystem 1\n")

    def test_outside_a_venv_nothing_changes(self):
        self.assertEqual(self.bash("pip\nhash -r\npip"), "system 1\nsystem 1\n")

    def test_leaving_a_venv_brings_it_back(self):
        self.assertEqual(self.bash(f"{ACTIVATE}\npip\ndeactivate\npip"), "venv unset\nsystem 1\n")
        self.assertEqual(self.bash(f"{ACTIVATE}\n. second/bin/activate\npip\ndeactivate\npip"), "second unset\nsystem 1\n")

    def test_the_choice_of_a_script_is_left_alone(self):
        for choice in ("0", "yes", ""):
            self.assertEqual(self.bash(f"{ACTIVATE}\npip\ndeactivate\npip", PIP_USER=choice), f"venv {choice}\nsystem {choice}\n")
        self.assertEqual(self.bash(f"{ACTIVATE}\npip\ndeactivate\npip", PIP_USER=None), "venv unset\nsystem unset\n")
        self.assertEqual(self.bash(f"{ACTIVATE}\nexport PIP_USER=1\npip\ndeactivate\npip"), "venv 1\nsystem 1\n")
        self.assertEqual(self.bash(f"{ACTIVATE}\nexport PIP_USER=0\ndeactivate\npip"), "system 0\n")

    def test_a_venv_that_is_active_already(self):
        self.assertEqual(self.bash("pip", VIRTUAL_ENV="/venv"), "system unset\n")

    def test_strict_scripts_run_as_before(self):
        self.assertEqual(self.bash(f"set -u\n{ACTIVATE}\npip\nfalse\necho $?\n(exit 3)\necho $?"), "venv unset\n1\n3\n")

    def test_scripts_may_use_these_names_otherwise(self):
        self.assertEqual(self.bash("hash no-such-program 2>/dev/null || echo missing"), "missing\n")

    def test_it_is_appended_once_to_whatever_is_there(self):
        shown = 'echo "${#PROMPT_COMMAND[@]}"; printf "<%s>" "${PROMPT_COMMAND[@]}"'
        guard = "_pip_user_venv_guard"
        for rc, expected in (("", f"1\n<{guard}>"), ("PROMPT_COMMAND='true;'", f"1\n<true;\n{guard}>"),
                             ("PROMPT_COMMAND=(true 'false')", f"2\n<true\n{guard}><false>"),
                             ("PROMPT_COMMAND=()", f"1\n<{guard}>"),
                             (f"PROMPT_COMMAND='{guard}; true'", f"1\n<{guard}; true>"),
                             (f"PROMPT_COMMAND=(true {guard})", f"2\n<true><{guard}>")):  # fmt: skip
            again = f". {DATA}/defaults/.bashrc"
            self.assertEqual(self.bash(f"{again}\n{again}\n{shown}", rc), expected, rc)
            self.assertEqual(self.bash(f"{ACTIVATE}\nhash\npip", rc).splitlines()[-1], "venv unset", rc)
            self.assertEqual(self.bash("echo here", f"set -u\n{rc}"), "here\n", rc)

    def test_reading_it_is_silent_and_leaves_only_its_functions(self):
        done = subprocess.run(["bash", "-c", f". {DATA}/defaults/.bashrc; compgen -A function; echo end"], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("end\n", ""))  # not interactive: nothing at all

    def test_what_does_not_read_it(self):
        self.assertEqual(self.bash("venv/bin/pip install x"), "venv 1\n")


class Profile(unittest.TestCase):
    def test_a_login_shell_has_the_agents_directories_whatever_etc_profile_says(self):
        for shell in ("dash", "bash"):
            script = f'PATH=/usr/bin:/bin; . {DATA}/defaults/.profile.in; . {DATA}/defaults/.profile.in; echo "$PATH"'
            done = subprocess.run([shell, "-eu", "-c", script], env={"HOME": "/h", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
            own = "/h/.local/share/mise/shims:/h/.local/bin:/h/.local/share/npm-global/bin:/h/.local/share/cargo/bin:/h/.local/share/go/bin"
            self.assertEqual((done.stdout, done.stderr), (f"{own}:@SHIM_DIR@:/usr/bin:/bin\n", ""))


if __name__ == "__main__":
    unittest.main()
