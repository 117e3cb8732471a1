"""Every Nix file can be read, the package is built as the machine of tests/system/test_nixos_layout.py is, and the flake holds together."""

import subprocess

import pytest
from cache import NIXOS_PREFIX, NIXOS_PROGRAMS, NIXOS_SETTINGS
from evaluating import LIBRARIES, SOURCE, flake_check, nix

FILES = [SOURCE / "flake.nix", *SOURCE.glob("nix/**/*.nix"), *SOURCE.glob("tests/nix/**/*.nix")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_it_can_be_parsed(file):
    done = subprocess.run(["nix-instantiate", "--store", "dummy://", "--parse", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_is_built_as_the_tests_build_it():
    programs = {"bashInteractive": "bash", "bubblewrap": "bubblewrap", "util-linux": "util-linux"}
    given = {name: f'"{NIXOS_PROGRAMS[program]}"' for name, program in programs.items()}
    libraries = ["boost", "cli11", "cmake", "curl", "doctest", "fmt", "libpsl", "libseccomp", "meson", "ninja", "nlohmann_json", "openssl", "pkg-config", "python3", "scdoc", "sdbus-cpp_2", "spdlog", "systemd", "yaml-cpp"]
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


def test_nix_flake_check_accepts_the_flake(library, tmp_path):
    done = flake_check(library, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("overlays.default = final: prev:", "overlays.default = final: previous:", "overlay does not take an argument named 'prev'"),
        ("{ imports = [ ./nix/module.nix ]; }", "./nix/module.nix", "module must be a function or an attribute set"),
        ("{ default = pkgs.callPackage ./nix/package.nix { }; }", '{ default = "pi-agent"; }', "flake attribute 'packages.x86_64-linux.default' is not a derivation"),
        ("./nix/test-vm.nix", "./nix/gone.nix", "nix/gone.nix"),
        ("packages = [ pkgs.clang-tools pkgs.shellcheck ];", "packages = [ pkgs.clang-tool ];", "attribute 'clang-tool' missing"),
    ],
)
def test_nix_flake_check_finds_what_is_wrong(right, wrong, words, tmp_path):
    done = flake_check(LIBRARIES["stand-in"], tmp_path, (right, wrong))
    assert done.returncode != 0 and words in done.stderr, done.stderr
