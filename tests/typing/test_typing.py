"""What a type checker says about code that uses Fenceline."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
Problems = dict[int, set[str]]


def check(tmp_path: Path, file: str, *, config: str = "mypy.ini") -> Problems:
    """The codes of mypy's errors by line."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", FOLDER / config, "--cache-dir", tmp_path),
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


def expected(file: str) -> Problems:
    return {
        number: set(re.split(r", *", marked[1]))
        for number, line in enumerate((FOLDER / file).read_text().splitlines(), start=1)
        if (marked := re.search(r"# E: \[(.+)\]$", line))
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_the_public_surface_passes_mypy_strict(cache: Path) -> None:
    assert check(cache, "example.py") == {}


def test_wrong_uses_are_found_and_nothing_else(cache: Path) -> None:
    marked = expected("wrong.py")

    assert len(marked) > 20
    assert check(cache, "wrong.py") == marked


def test_without_the_plugin_only_the_context_is_asked_for(tmp_path: Path) -> None:
    """The limit of Python's typing that the plugin lifts; when this fails, the plugin may have become needless."""
    problems = check(tmp_path, "example.py", config="without_plugin.ini")
    lines = (FOLDER / "example.py").read_text().splitlines()

    assert problems
    assert all("_context" in lines[number - 1] for number in problems)
