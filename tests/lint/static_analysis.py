"""Runs one static analyser over the product's sources, as the build directory compiles them. Skipped (77) where it is not installed."""

import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OURS = ("admin", "common", "fetch", "gate", "runner", "wrapper")
SKIPPED = 77


def is_ours(file, root, build):
    """A source of the product itself, or meson's file that includes many of them; its tests are no part of what runs as root."""
    return any(file.is_relative_to(place) and file.relative_to(place).parts[0] in OURS for place in (build, root))


def sources(root, build):
    """What the build compiles of them."""
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {Path(command["directory"], command["file"]).resolve() for command in commands}
    return sorted(file for file in files if is_ours(file, root, build))


def every(command, files):
    """Runs the command on each file, as many at once as there are processors; says whether all went well."""

    def one(file):
        done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
        return done.returncode == 0 or print(done.stdout + done.stderr, flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return all([bool(good) for good in pool.map(one, files)])


def cppcheck(program, root, build, files):
    """All that it knows but style, which is clang-tidy's, and what has its reason here or beside the line."""
    # readdir_r(3) says itself that it is not to be used; the programs that read accounts have one thread.
    wrong_here = [f"--suppress={name}" for name in ("readdirCalled", "getpwentCalled", "getgrnamCalled")]
    wrong_here.append("-DNLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(...)=")  # headers of libraries are not read: a macro of theirs that makes functions
    with tempfile.TemporaryDirectory() as directory:
        options = ["--enable=warning,performance,portability", "--inline-suppr", "--library=posix", "--quiet", "--error-exitcode=1"]
        selected = [f"--file-filter={file}" for file in files]
        command = [program, f"--project={build / 'compile_commands.json'}", *options, *wrong_here, *selected, f"--cppcheck-build-dir={directory}"]
        return subprocess.run([*command, f"-j{os.cpu_count()}"], cwd=root, check=False).returncode == 0


def unified(build, files, directory):
    """Writes a compilation database there. Where meson includes many sources in one file it is a copy of another name:
    only in one that is called so does clang follow the paths through what it includes (AnalysisManager::isInCodeFile)."""
    commands = []
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = Path(command["directory"], command["file"]).resolve()
        if file in files and file.is_relative_to(build):
            copy = Path(directory, f"UnifiedSource-{len(commands)}-{file.name}")
            copy.write_text(file.read_text())
            command = {**command, "file": str(copy), "command": command["command"].replace(command["file"], str(copy))}
        if file in files:
            commands.append(command)
    Path(directory, "compile_commands.json").write_text(json.dumps(commands))


def clang_tidy(program, root, build, files):
    # It would look for its file above those that it reads.
    return every([program, "-quiet", "-p", build, f"--config-file={root / '.clang-tidy'}"], files)


def analyze_build(program, root, build, files):
    """The analyser that scan-build runs, with its default checkers and those for classes, over what the build has compiled."""
    with tempfile.TemporaryDirectory() as directory:
        unified(build, files, directory)
        command = [program, "--cdb", f"{directory}/compile_commands.json", "--status-bugs", "--plist", "--output", f"{directory}/found", "--enable-checker", "optin.cplusplus"]
        good = subprocess.run(command, cwd=root, check=False).returncode == 0
        for report in sorted(Path(directory).rglob("*.plist")):
            found = plistlib.loads(report.read_bytes())
            for each in found["diagnostics"]:
                print(f"{found['files'][each['location']['file']]}:{each['location']['line']}: {each['description']} [{each['check_name']}]")
        for failure in sorted(Path(directory).rglob("*.stderr.txt")):  # what it could not read
            print(failure.read_text())
        return good


# By name: the programs that may be it, and how it is run.
TOOLS = {
    "cppcheck": (("cppcheck",), cppcheck),
    "clang-tidy": (("clang-tidy-14", "clang-tidy"), clang_tidy),
    "scan-build": (("analyze-build-14", "analyze-build"), analyze_build),
}


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in TOOLS:
        print(f"usage: static_analysis.py {'|'.join(TOOLS)} PROJECT_DIRECTORY BUILD_DIRECTORY", file=sys.stderr)
        return 64
    names, run = TOOLS[arguments[0]]
    program = next(filter(None, map(shutil.which, names)), None)
    if not program:
        print(f"skipped: {names[0]} is not installed")
        return SKIPPED
    root, build = (Path(argument).resolve() for argument in arguments[1:])
    files = sources(root, build)
    if not files:
        print(f"{build} compiles nothing of {root}: nothing was checked")
        return 1
    good = run(program, root, build, files)
    print(f"{len(files)} files checked with {program}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
