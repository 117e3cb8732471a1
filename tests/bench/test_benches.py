"""Each bench runs for one round on small inputs, all in one machine: it works, whatever it costs there."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from bench_main import text_of
from benches import BENCHES

HERE = Path(__file__).resolve().parent
SEED = os.environ.get("PI_AGENT_SEED", "0")


def run(program, machine, *arguments):
    command = [HERE / program, "--machine", machine.recipe, "--booted", machine.name, "--seed", SEED, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{program} ended with status {done.returncode}\n{done.stderr}"
    return done.stdout


def test_every_bench_is_in_the_list():
    programs = {file.name for file in HERE.iterdir() if file.is_file() and os.access(file, os.X_OK)}
    assert programs == {"all", *(bench for bench, _, _ in BENCHES)}


@pytest.mark.parametrize(("bench", "quick"), [pytest.param(bench, quick, id=bench) for bench, _, quick in BENCHES])
def test_a_bench_runs_for_one_round(machine, bench, quick):
    (answer,) = json.loads(run(bench, machine, "--json", *quick))
    assert answer["machine"] == machine.recipe
    assert any(line["bound"] for line in answer["lines"]), f"no line of {bench} is held to a bound"
    assert all(text_of(line) for line in answer["lines"])


def test_all_prints_one_table_against_the_bounds(machine, tmp_path):
    picture = tmp_path / "ratios.svg"
    lines = run("all", machine, "--quick", "--only", "pipe", "--only", "together", "--svg", picture).splitlines()
    assert lines[1] == f"{machine.recipe} (seed {SEED})" and "of 2 bounds missed" in "\n".join(lines), lines
    assert sum("the bound of" in line for line in lines) == 2 and "pi / the same pipe" in picture.read_text(), lines
