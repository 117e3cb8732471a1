"""All cases of work, by family: one file each in cases/."""

import importlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = {file.stem: importlib.import_module(f"cases.{file.stem}").CASES for file in sorted((HERE / "cases").glob("*.py"))}
