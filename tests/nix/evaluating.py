"""Evaluating the Nix files on this host, and asking the product about policies in the root that it is built in."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from cache import NIXOS_PREFIX, SOURCE, Build, locked, node_modules
from recipes import LINTED

HERE = Path(__file__).resolve().parent
STAND_IN = HERE / "stand_in/lib.nix"
# nixpkgs' own library, where somebody has it: the directory lib of a checkout. It is no part of this repository.
LIBRARIES = {"stand-in": STAND_IN, **({"nixpkgs": Path(os.environ["NIXPKGS_LIB"])} if os.environ.get("NIXPKGS_LIB") else {})}
UNKNOWN_NAME = "@binary-name@"


class EvaluationError(Exception):
    pass


def nix(*arguments):
    """What a Nix expression comes to; no store is needed, and none is written."""
    command = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    if done.returncode != 0:
        raise EvaluationError(done.stderr)
    return json.loads(done.stdout)


def flake_check(library, place, change=None):
    """`nix flake check --no-build` of the flake, with a stand-in for nixpkgs that has this library, all of it below `place`.

    `change` is a text of flake.nix, and what is to stand there instead."""
    flake = place / "flake"
    shutil.copytree(SOURCE / "nix", flake / "nix")
    shutil.copy(SOURCE / "meson.build", flake)
    text = (SOURCE / "flake.nix").read_text()
    if change:
        assert text.count(change[0]) == 1, change
        text = text.replace(*change)
    (flake / "flake.nix").write_text(text)
    nixpkgs = place / "nixpkgs"
    nixpkgs.mkdir()
    shutil.copy(STAND_IN.with_name("flake.nix"), nixpkgs)
    if library.is_dir():
        shutil.copytree(library, nixpkgs / "lib")
    else:
        (nixpkgs / "lib").mkdir()
        shutil.copy(library, nixpkgs / "lib/default.nix")
    command = ["nix", "--extra-experimental-features", "nix-command flakes", "--store", place / "store", "flake", "check", "--no-build",
               "--no-use-registries", "--option", "build-users-group", "", "--override-input", "nixpkgs", f"path:{nixpkgs}", f"path:{flake}"]  # fmt: skip
    environment = {**os.environ, "HOME": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def evaluate_modules(modules, wanted, library=STAND_IN):
    """`wanted` of evaluate.nix ("configurations", "failures", "options", "undocumented") for a file of modules."""
    return nix("evaluate.nix", "-A", wanted, "--arg", "library", library, "--arg", "modules", HERE / modules, "--argstr", "ours", NIXOS_PREFIX)


def as_built(draft, name="pi"):
    """The draft as the build of a system leaves it, for an agent whose program has this name."""
    return draft.replace(UNKNOWN_NAME, name)


def read_yaml(texts):
    command = ["node", HERE / "read_yaml.mjs", node_modules("schema")]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Product:
    """pi-agentctl where it was built: it runs there, without a booted machine."""

    def __init__(self):
        self.build = Build(LINTED)
        self.build.compile()

    def _run(self, script, destination):
        with locked(self.build.directory):
            done = subprocess.run(self.build.command(["sh", "-c", script], destination), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        return done.stdout

    def check(self, policies):
        """{name: errors} of {name: text}, for no host in particular; none where the policy is valid."""
        with tempfile.TemporaryDirectory() as directory:
            for name, text in policies.items():
                (Path(directory) / f"{name}.yaml").write_text(text)
            script = "cd /dest && for f in *.yaml; do /build/admin/pi-agentctl check --policy-only --json $f >$f.report || [ $? = 78 ] || exit 1; done"
            self._run(script, directory)
            reports = {name: json.loads((Path(directory) / f"{name}.yaml.report").read_text()) for name in policies}
        assert all(report["valid"] == (not report["errors"]) for report in reports.values())
        return {name: [f"{error['key']}: {error['message']}" for error in report["errors"]] for name, report in reports.items()}
