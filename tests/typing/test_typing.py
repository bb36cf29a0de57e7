"""What type checkers say about code that uses Fenceline, without a plugin."""

import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
#: Kept, so that the next run takes two seconds and not twenty.
MYPY_CACHE = FOLDER.parents[1] / ".mypy_cache" / "typing"
Problems = dict[int, set[str]]


def mypy(file: str) -> Problems:
    """The codes of mypy's errors by line."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", FOLDER / "mypy.ini", "--cache-dir", MYPY_CACHE),
            *("--no-error-summary", "--hide-error-context", "--no-pretty", FOLDER / file),
        ],
        cwd=FOLDER.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    problems: Problems = defaultdict(set)
    for line in done.stdout.splitlines():
        found = re.fullmatch(r"(?P<file>.+?):(?P<line>\d+): error: .* +\[(?P<code>[a-z-]+)\]", line)
        if found:
            assert found["file"].endswith(file), line
            problems[int(found["line"])].add(found["code"])
        else:
            assert ": note: " in line, line
    return dict(problems)


@functools.cache
def pyright_problems() -> list[dict[str, Any]]:
    """pyright's errors and warnings in all files."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", FOLDER],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    problems: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return problems


def pyright(file: str) -> dict[int, list[str]]:
    """pyright's errors and warnings by line."""
    problems: dict[int, list[str]] = defaultdict(list)
    for found in pyright_problems():
        if found["file"].endswith(file):
            problems[found["range"]["start"]["line"] + 1].append(found["message"])
    return dict(problems)


def expected(file: str) -> Problems:
    return {
        number: set(re.split(r", *", marked[1]))
        for number, line in enumerate((FOLDER / file).read_text().splitlines(), start=1)
        if (marked := re.search(r"# E: \[(.+)\]$", line))
    }


@pytest.mark.xdist_group("mypy")
def test_the_public_surface_passes_mypy_strict() -> None:
    assert mypy("example.py") == {}


@pytest.mark.xdist_group("mypy")
def test_mypy_finds_wrong_uses_and_nothing_else() -> None:
    marked = expected("wrong.py")

    assert len(marked) > 20
    assert mypy("wrong.py") == marked


@pytest.mark.xdist_group("pyright")
def test_the_public_surface_passes_pyright_strict() -> None:
    assert pyright("example.py") == {}


@pytest.mark.xdist_group("pyright")
def test_pyright_finds_wrong_uses_and_nothing_else() -> None:
    assert pyright("wrong.py").keys() == expected("wrong.py").keys()
