"""All cases of work, by family (one file each in cases/) and together, and what differs in any of them."""

import importlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = {file.stem: importlib.import_module(f"cases.{file.stem}").CASES for file in sorted((HERE / "cases").glob("*.py"))}
EVERY = [case for cases in CASES.values() for case in cases]
DIFFERENCES = {case.differs for case in EVERY} - {None}
