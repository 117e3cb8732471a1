"""What root runs behind the sudo rule stays within its budget of lines: counted from what the linker put into the runner."""

import subprocess

from cache import NSPAWN_ENVIRONMENT, Build


def test_root_runs_no_more_lines_than_its_budget(machine_name):
    build = Build(machine_name)
    build.compile()
    command = ["python3", "-B", "/src/tests/lint/root_lines.py", "/build/runner/pi-agent-runner", "/src"]
    done = subprocess.run(build.command(command), env=NSPAWN_ENVIRONMENT, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
