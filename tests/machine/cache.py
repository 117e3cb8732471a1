"""What is made once and kept outside the checkout: machine roots, build roots, agents and build directories."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from cgroup import Cgroup
from progress import CommandFailed, quietly, say
from recipes import AGENTS, CLIENTS, DOCKER, ENGINES, JUDGING, LINTED, MACHINES, PODMAN, TOOLCHAINS, WORK

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
CACHE = Path(os.environ.get("PI_AGENT_TEST_CACHE", "/var/cache/pi-agent-tests"))
# No system call filter of nspawn's own: a machine that forbids io_uring or Landlock by itself proves nothing about the product.
NSPAWN_ENVIRONMENT = {**os.environ, "UNIFIED_CGROUP_HIERARCHY": "1", "SYSTEMD_SECCOMP": "0"}
LEAN = ["--variant=minbase", "--dpkgopt=force-unsafe-io"]
LEAN += [f"--dpkgopt=path-exclude=/usr/share/{unread}/*" for unread in ("doc", "info", "locale", "man")]
AGENT_DIRECTORY = "/usr/lib/pi-agent/agent"
# bin/pi of an agent's tree, wherever that is put.
AGENT_LAUNCHER = """#!/bin/sh
modules=${{0%/bin/pi}}/node_modules
exec "$modules/{node}" "$modules/{cli}" "$@"
"""


@contextlib.contextmanager
def locked(path):
    """Holds an exclusive lock on path.lock; a second process waits here instead of doing the same work."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(path, make):
    """`path`, made by make(partial) if it is not there yet; never seen half made."""
    with locked(path):
        if not path.exists():
            partial = path.with_name(path.name + ".partial")
            remove_tree(partial)
            make(partial)
            partial.rename(path)
    return path


def remove_tree(path):
    if path.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", "--", path], check=True)


def emptied(directory):
    """The directory, made if need be, without what was in it. It is never removed itself: a build beside this one, of the
    same root, may have it as a place to mount, and rmdir(2) of such a place takes its mount away in every namespace."""
    directory.mkdir(parents=True, exist_ok=True)
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()
    return directory


def files_below(tree):
    """Every file and link, relative to it."""
    for directory, directories, files in os.walk(tree):
        for name in [*files, *(name for name in directories if os.path.islink(os.path.join(directory, name)))]:
            yield os.path.relpath(os.path.join(directory, name), tree)


def copy_tree(source, target):
    subprocess.run(["cp", "-a", "--reflink=auto", "--", source, target], check=True)


def digest(*inputs):
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:12]


def bootstrap(release, packages, target, *options):
    """A minimal Debian with the packages, from the distribution's default mirror."""
    quietly(["mmdebstrap", *LEAN, *options, "--include=" + ",".join(packages), release, target], target.with_name(target.name + ".log"))


def machine_root(name, kind="root", more=(), options=()):
    """The root that instances of the machine are copies of: accounts, projects and the model service are in it; `more` packages, for another kind."""
    recipe = MACHINES[name]
    packages, lean = (*recipe.packages, *more), [*LEAN, *options]
    placed = {
        "prepare_root.sh": "root",
        "scripted-model.service": "etc/systemd/system",
        "scripted-model.conf": "etc/tmpfiles.d",
        "scripted_model.py": "usr/local/lib",
    }
    contents = [(HERE / file).read_text() for file in placed]

    def make(root):
        say(f"making the {kind} of machine {name}")
        bootstrap(recipe.release, packages, root, *options)
        for file, directory in placed.items():
            shutil.copy(HERE / file, root / directory)
        quietly(["chroot", root, "sh", "/root/prepare_root.sh"], CACHE / name / f"prepare-{kind}.log")

    return made_once(CACHE / name / f"{kind}-{digest(lean, recipe.release, packages, contents)}", make)


def work_root(name):
    """The same with what people work with, and the manual pages that tests read; go's own library for its race detector and profilers is left out."""
    shown = [f"--dpkgopt=path-include=/usr/share/man/man1/{page}.1.gz" for page in ("ls", "git")]
    return machine_root(name, "work", WORK, ["--dpkgopt=path-exclude=/usr/lib/go-*/pkg/linux_amd64_*", *shown])


def added_tree(name, kind, packages, *options):
    """What packages put into a machine's /usr, with all that they need; nothing that is there already."""
    recipe = MACHINES[name]
    there = machine_root(name) / "usr"
    options = ["--variant=extract", *options]

    def make(tree):
        say(f"making the {kind} of machine {name}")
        extracted = tree.with_name(tree.name + ".packages")
        remove_tree(extracted)
        bootstrap(recipe.release, packages, extracted, *options)
        (extracted / "usr").rename(tree)
        for directory in ("lib", "lib64"):  # of packages from before all was in /usr
            if (extracted / directory).is_dir():
                subprocess.run(["cp", "-al", "--", f"{extracted / directory}/.", tree / directory], check=True)
        remove_tree(extracted)
        for file in files_below(tree):
            if os.path.lexists(there / file):
                (tree / file).unlink()

    return made_once(CACHE / name / f"{kind}-{digest(LEAN, options, packages, there.parent.name)}", make)


def toolchains_tree(name):
    """Debian's cargo, go and cmake, with the linker that they need."""
    tree = added_tree(name, "toolchains", TOOLCHAINS, "--dpkgopt=path-exclude=/usr/lib/go-*/pkg/linux_amd64_*")  # go's own for profilers
    if not os.path.lexists(tree / "bin/cc"):
        (tree / "bin/cc").symlink_to("gcc")
    return tree


def clients_tree(name):
    """Debian's python3-requests and python3-aiohttp."""
    return added_tree(name, "clients", CLIENTS)


def podman_tree(name):
    """Debian's podman, with what runs and watches its containers."""
    return added_tree(name, "podman", PODMAN)


def docker_tree(name):
    """Debian's docker with its daemon, and what that runs."""
    return added_tree(name, "docker", DOCKER)


def engines_tree(name):
    """What plays rendered Jobs: podman with what that needs; and Slurm where the release has one that needs no munge."""
    return added_tree(name, "engines", ENGINES[name])


def build_root(name, tools=False, lean=False):
    """The root that the product is built in: same release as the machine, with compilers; never booted. `lean`: the smallest that makes the package,
    unless a larger one is there."""
    recipe = MACHINES[name]
    tools = tools or name == LINTED  # which every check needs there: one root takes less time than two

    def place(kind, packages):
        return CACHE / name / f"{kind}-{digest(LEAN, recipe.release, packages)}", packages

    packages = recipe.build_packages + (recipe.tool_packages if tools else ())
    kind = "tools-root" if tools else "build-root"
    path, packages = place(kind, packages)
    if lean and not path.exists():
        kind = "lean-root"
        path, packages = place(kind, tuple(package for package in recipe.build_packages if package not in JUDGING))

    def make(root):
        say(f"making the {kind} of machine {name}")
        bootstrap(recipe.release, packages, root)
        for mount_point in ("src", "build", "dest", "ccache"):
            (root / mount_point).mkdir()

    return made_once(path, make)


def npm_ci(directory, tree, log):
    """Installs what a committed package-lock.json says into `tree`."""
    tree.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(directory / file, tree)
    if not shutil.which("npm"):
        say("installing Debian's npm on this host")
        quietly([HERE / "install-host-packages", "npm"], log)
    # Without scripts: nothing that the packages would run at installation is needed.
    quietly(["npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier"], log, cwd=tree)


def agent_tree(version):
    """The real agent and its node from npm, laid out as below AGENT_DIRECTORY in a machine."""
    launcher = AGENT_LAUNCHER.format(**vars(AGENTS[version]))
    inputs = [HERE / "agent" / version / file for file in ("package.json", "package-lock.json")]

    def make(tree):
        say(f"installing agent {version} from npm")
        npm_ci(HERE / "agent" / version, tree, CACHE / "agents" / f"{version}.npm.log")
        (tree / "bin").mkdir()
        (tree / "bin/pi").write_text(launcher)
        subprocess.run(["chown", "-R", "root:root", tree], check=True)
        subprocess.run(["chmod", "-R", "u=rwX,go=rX", tree], check=True)
        (tree / "bin/pi").chmod(0o755)

    return made_once(CACHE / "agents" / f"{version}-{digest(launcher, [file.read_text() for file in inputs])}", make)


def node_modules(name):
    """What NAME/package-lock.json beside this file says, from npm: the directory that has node_modules in it."""
    lock = (HERE / name / "package-lock.json").read_text()

    def make(tree):
        say(f"installing {name} of the tests from npm")
        npm_ci(HERE / name, tree, CACHE / name / "npm.log")

    return made_once(CACHE / name / digest(lock), make)


# How the product is built for what, as keywords of Build.
# Optimised as it is for users. Whole debug information took a third of the time to make; what root runs is counted by the numbers of lines.
PRODUCT = {"options": ("-Ddebug=false", "-Dcpp_args=-g1")}
SANITIZERS = ("-Db_sanitize=address,undefined", "-Dcpp_args=-fno-sanitize-recover=all", "-Db_lundef=false")  # by itself what is undefined is told and goes on
SANITIZED = {"variant": "sanitized", "options": ("-Doptimization=0", "-Ddebug=false", *SANITIZERS)}
# A test can take a defence out of it. Two files know; all others come out of the compiler's cache once the product is built.
WITH_SEAMS = {"variant": "weak", "options": (*PRODUCT["options"], "-Dtest_seams=true")}
# Each file by itself: it includes what it uses.
FILE_BY_FILE = {"tools": True, "options": (*PRODUCT["options"], "-Dunity=off")}
WITH_CLANG = ("CC=ccache clang", "CXX=ccache clang++")
CLANG = {"variant": "clang", "environment": WITH_CLANG, **FILE_BY_FILE}
CLANG_AT_ONCE = {"variant": "clang", "environment": WITH_CLANG, "tools": True, "options": PRODUCT["options"]}
# Of it only what the fuzzers try is built, and has its sanitizers from tests/fuzz/meson.build.
FUZZ = {"variant": "fuzz", "tools": True, "environment": WITH_CLANG, "options": ("-Dfuzzers=true", "-Doptimization=1", "-Ddebug=false")}
# As nix/package.nix builds it (tests/nix/test_package.py holds the two together), below paths that a Nix store has.
STORE = "/nix/store"
NIXOS_PREFIX = f"{STORE}/1c0lmyz4ndxgwqkh8sfjr5vbp2a697i3-pi-agent"
NIXOS_PROGRAMS = {
    "bash": f"{STORE}/3ayqn8dxkl7b4gwv9fzcmrjsh0i1p625-bash-interactive",
    "bubblewrap": f"{STORE}/5bq0wnrv7hs3gxl1zmfkyj8dca4p692i-bubblewrap",
    "util-linux": f"{STORE}/7kz3d1mfq5vxry8wbhlg0nacsj4p926i-util-linux",
}
NIXOS_SETTINGS = (
    "-Dsudo_path=/run/wrappers/bin/sudo",
    "-Dsystem_path=/run/current-system/sw/bin",
    f"-Dshell_path={NIXOS_PROGRAMS['bash']}/bin/bash",
    f"-Dbwrap_path={NIXOS_PROGRAMS['bubblewrap']}/bin/bwrap",
    f"-Dsetpriv_path={NIXOS_PROGRAMS['util-linux']}/bin/setpriv",
    *(f"-D{program}_path=/run/current-system/sw/bin/{program}" for program in ("docker", "podman", "crun", "conmon")),
    "-Dsystem_managed=true",
    "-Dcommand_name=pi",
    "-Drunner_name=pi-agent-runner",
)
# The settings concern one file of C++.
NIXOS = {"variant": "nixos", "options": (*PRODUCT["options"], f"--prefix={NIXOS_PREFIX}", *NIXOS_SETTINGS)}
# The compiler is named, so that meson does not put ccache before it: clang's tools take the command.
LINT = {"variant": "lint", "environment": ("CXX=c++",), **FILE_BY_FILE}
STATIC = {"variant": "static", "environment": ("CXX=c++",), "tools": True, "options": PRODUCT["options"]}  # many files at once: most of the time goes to headers
# What was compiled once is not compiled again for another build or checkout (ccache(1)). A file that changed while it was compiled is not kept: no sloppiness.
CCACHE = ("CCACHE_DIR=/ccache", "CCACHE_DEPEND=1", "CCACHE_MAXSIZE=3G")


# The version is meson.build's alone, so this file of the package is written with it.
CHANGELOG = """pi-agent ({version}) unstable; urgency=medium

  * What changed is said by the history of the source.

 -- {maintainer}  {date}
"""

# A container has a session of its own, and beside other sessions only an autogroup's niceness counts (sched(7)).
AS_NICE = ("sh", "-c", '[ ! -e /proc/self/autogroup ] || echo "$0" >/proc/self/autogroup || exit; exec "$@"')


class Build:
    """One build directory for one checkout on one machine; commands run in the build root, the checkout read-only."""

    def __init__(self, name, source=SOURCE, variant="product", options=PRODUCT["options"], environment=(), tools=False, lean=False):
        self.name = name
        self.root = build_root(name, tools, lean)
        self.source = Path(source).resolve()
        self.directory = CACHE / name / f"build-{variant}-{digest(self.root.name, str(self.source), *options, *environment)}"
        self.options = ["--prefix=/usr", "--libexecdir=libexec", "--sysconfdir=/etc", "-Dwerror=true", *options]
        self.environment = environment
        self.compiled = CACHE / name / "compiled"
        self.log = self.directory.with_name(self.directory.name + ".log")

    def command(self, argv, destination=None, staged=None):
        """`staged`: a copy of the checkout that may be written, in the place of the checkout."""
        self.compiled.mkdir(parents=True, exist_ok=True)
        binds = [f"--bind={staged}:/src" if staged else f"--bind-ro={self.source}:/src", f"--bind={self.directory}:/build", f"--bind={self.compiled}:/ccache"]
        if destination:
            binds.append(f"--bind={destination}:/dest")
        settings = [f"--setenv={setting}" for setting in self.settings()]
        nspawn = ["systemd-nspawn", "-q", "-D", self.root, "--read-only", "--as-pid2", "--register=no", "--keep-unit"]
        nspawn += [f"--machine={self.directory.name}"]  # builds in one root at a time must not share its name
        writable = ["--tmpfs=/opt", "--tmpfs=/srv", "--tmpfs=/var/tmp"]  # beside /tmp and /run: unit tests need trusted parents, too
        return self.cgroup.entering([*nspawn, "--private-network", "--pipe", *writable, *binds, *settings, *AS_NICE, str(os.nice(0)), *argv])

    def _quietly(self, argv, destination=None, staged=None):
        try:
            quietly(self.command(argv, destination, staged), self.log, shown_as=argv, env=NSPAWN_ENVIRONMENT)
        finally:
            self.cgroup.kill()

    @functools.cached_property
    def cgroup(self):
        return Cgroup.for_tests(self.directory.name)

    def settings(self):
        """The environment of its commands."""
        seed = [f"PI_AGENT_SEED={os.environ['PI_AGENT_SEED']}"] if os.environ.get("PI_AGENT_SEED") else []
        full = [f"PI_AGENT_FULL={os.environ['PI_AGENT_FULL']}"] if os.environ.get("PI_AGENT_FULL") else []
        return ["LANG=C.UTF-8", *CCACHE, *self.environment, *seed, *full]

    def setup(self):
        with locked(self.directory):
            self.log.unlink(missing_ok=True)
            if (self.directory / "build.ninja").exists():
                self._quietly(["ninja", "-C", "/build", "build.ninja"])  # there may be programs and tests since it was configured
            else:
                emptied(self.directory)
                self._quietly(["meson", "setup", "/build", "/src", *self.options])

    def compile(self, everything=False):
        """Builds what is installed; `everything`: the unit tests too."""
        self.setup()
        with locked(self.directory):
            targets = [] if everything else self._installed_targets()
            self._quietly(["ninja", "-C", "/build", "-j", str(os.cpu_count()), *targets])

    def compile_targets(self, targets):
        """Builds files that are not installed, e.g. what a bench needs; by their paths in the build directory."""
        self.setup()
        with locked(self.directory):
            self._quietly(["ninja", "-C", "/build", "-j", str(os.cpu_count()), *targets])

    def _installed_targets(self):
        targets = json.loads((self.directory / "meson-info/intro-targets.json").read_text())
        files = [file for target in targets if target["installed"] for file in target["filename"]]
        return [os.path.relpath(file, "/build") for file in files]

    def tests_of(self, suite, only=None):
        """The tests of a suite, as meson describes them; with `only`, those that have it in their name."""
        tests = json.loads((self.directory / "meson-info/intro-tests.json").read_text())
        tests = [test for test in tests if any(label.split(":")[-1] == suite for label in test["suite"])]
        return [test for test in tests if not only or only.lower() in test["name"].lower()]

    def test(self, suite, tests):
        """Builds what the tests need, runs them, and returns meson's log of their results."""
        log = self.directory / "meson-logs/testlog.json"
        # Left to itself, meson would build everything for tests that need nothing built.
        rebuild = [] if any(test["depends"] for test in tests) else ["--no-rebuild"]
        with locked(self.directory):
            log.unlink(missing_ok=True)
            try:
                self._quietly(["meson", "test", "-C", "/build", *rebuild, "--suite", suite, *(test["name"] for test in tests)])
            except CommandFailed:
                if not log.exists():  # otherwise the log tells which test failed
                    raise
        return log

    def install(self, destination):
        self.compile()
        with locked(self.directory):
            self._quietly(["meson", "install", "-C", "/build", "--no-rebuild", "--destdir", "/dest"], destination)

    def package(self, destination, version=None):
        """Makes the Debian package of what is built in `destination`, an absolute path, and returns its path there."""
        self.compile()
        version = version or json.loads((self.directory / "meson-info/intro-projectinfo.json").read_text())["version"]
        version += f"~deb{MACHINES[self.name].number}"
        made_of = shutil.ignore_patterns(".git", "build*", "dist", "__pycache__")
        with tempfile.TemporaryDirectory(dir=CACHE / self.name) as directory, locked(self.directory):
            staged = Path(directory, "source")
            shutil.copytree(self.source, staged, ignore=made_of, symlinks=True)
            maintainer = re.search(r"^Maintainer: (.*)$", (staged / "debian/control").read_text(), re.MULTILINE).group(1)
            (staged / "debian/changelog").write_text(CHANGELOG.format(version=version, maintainer=maintainer, date=formatdate()))
            settings = ["PI_AGENT_BUILD=/build", "PI_AGENT_PACKAGES=/dest"]
            self._quietly(["env", "-C", "/src", *settings, "debian/rules", "binary"], destination, staged)
        return Path(destination, f"pi-agent_{version}_amd64.deb")

    def judge_package(self, package):
        """Throws CommandFailed unless lintian finds nothing to complain about."""
        judge = ["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", f"/dest/{package.name}"]
        with locked(self.directory):  # two of one name cannot run at a time
            self._quietly(judge, package.parent)
