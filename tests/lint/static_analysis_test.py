"""Plants a fault that only shows on a path through a function, in a room's source that another file includes, and expects an analyser to find it."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FAULT = """#include <string>
#include <utility>
std::size_t length(bool kept);
std::size_t length(bool kept)
{
    std::string text = "text";
    const std::string other = kept ? std::string() : std::move(text);
    return kept ? other.size() : text.size();
}
"""
SOUND = FAULT.replace("text.size()", "0")


def analysed(tool, source):
    """The exit status and the words of an analyser over a project whose one source this is, built as meson builds many at once."""
    with tempfile.TemporaryDirectory() as directory:
        root, build = Path(directory, "source"), Path(directory, "build")
        (root / "runner/root/planted").mkdir(parents=True)
        (build / "runner").mkdir(parents=True)
        shutil.copy(HERE.parents[1] / ".clang-tidy", root)
        (root / "runner/root/planted/planted.cpp").write_text(source)
        file = "runner/parts-unity0.cpp"
        (build / file).write_text(f"#include<{root}/runner/root/planted/planted.cpp>\n")
        command = f"c++ -std=c++20 -o runner/meson-generated_parts-unity0.cpp.o -c {file}"
        (build / "compile_commands.json").write_text(json.dumps([{"directory": str(build), "command": command, "file": file}]))
        done = subprocess.run([sys.executable, "-B", HERE / "static_analysis.py", tool, root, build], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main(tool):
    status, said = analysed(tool, FAULT)
    if status == 77:
        print(said)
        return status
    sound = analysed(tool, SOUND)
    good = status == 1 and "planted.cpp:8:" in said and "moved" in said and sound[0] == 0
    print(f"with the fault: status {status}\n{said}\nwithout: status {sound[0]}\n{sound[1]}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
