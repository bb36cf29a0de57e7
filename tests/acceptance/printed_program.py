"""Runs the program that the Python blocks of a page make up, and compares what it prints with what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.patience import seconds_left

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def run_python(database: str, folder: Path, *arguments: str) -> str:
    """What it prints; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "FENCELINE_DSN": database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_as_printed(page: str, database: str, folder: Path) -> None:
    (folder / "program.py").write_text("\n\n".join(code_blocks(DOCS / page, "python")))
    (printed,) = code_blocks(DOCS / page, "text")
    assert run_python(database, folder, "program.py") == printed
