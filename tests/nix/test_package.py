"""Every Nix file can be read, the package is built as the machine of tests/system/test_nixos_layout.py is, and the flake holds together."""

import subprocess

import pytest
from cache import NIXOS_PREFIX, NIXOS_PROGRAMS, NIXOS_SETTINGS
from evaluating import LIBRARIES, SOURCE, nix

FILES = [SOURCE / "flake.nix", *SOURCE.glob("nix/**/*.nix"), *SOURCE.glob("tests/nix/**/*.nix")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_it_can_be_parsed(file):
    done = subprocess.run(["nix-instantiate", "--store", "dummy://", "--parse", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_is_built_as_the_tests_build_it():
    programs = {"bashInteractive": "bash", "bubblewrap": "bubblewrap", "util-linux": "util-linux"}
    given = {name: f'"{NIXOS_PROGRAMS[program]}"' for name, program in programs.items()}
    libraries = ["cli11", "cmake", "doctest", "fmt", "libseccomp", "meson", "ninja", "nlohmann_json", "pkg-config", "python3", "scdoc", "sdbus-cpp_2", "systemd", "yaml-cpp"]
    arguments = {"lib": f"import {LIBRARIES['stand-in']}", "stdenv": "{ mkDerivation = x: x; }", **given, **dict.fromkeys(libraries, "null")}
    text = " ".join(f"{name} = {value};" for name, value in arguments.items())
    package = nix("--expr", f"let p = import {SOURCE}/nix/package.nix {{ {text} }}; in {{ inherit (p) mesonFlags version; }}")
    assert package["mesonFlags"] == list(NIXOS_SETTINGS)
    assert f"  version: '{package['version']}',\n" in (SOURCE / "meson.build").read_text()
    options = (SOURCE / "meson_options.txt").read_text()
    assert all(f"option('{flag[2:].split('=')[0]}'" in options for flag in package["mesonFlags"])


def test_the_flake_has_package_overlay_module_shell_and_checks(library):
    flake = nix("--arg", "library", library, "--argstr", "ours", NIXOS_PREFIX, "evaluate_flake.nix")
    assert flake["package"] == flake["overlaid"] == flake["check"] == NIXOS_PREFIX
    assert flake["systems"] == ["aarch64-linux", "x86_64-linux"] and flake["shell"] == ["clang-tools", "shellcheck"]
    assert flake["inputs"] == ["nixpkgs"]
    machine = flake["machine"]
    assert machine["failed"] == [] and machine["sudo"][0]["users"] == ["alice"]
    assert '"defaultModel": "ours"' in machine["draft"]
    compile(flake["testScript"], "testScript", "exec")
