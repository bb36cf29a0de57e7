"""docs/requirements.md names every requirement once, and for each a test that exists."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
#: How many each part has: A1 to A11, …
PARTS = {"A": 11, "B": 10, "C": 10, "D": 11, "E": 11, "X": 8}
IDS = [f"{part}{number}" for part, count in PARTS.items() for number in range(1, count + 1)]
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| (.*) \|$", re.MULTILINE)

ROWS = ROW.findall((ROOT / "docs" / "requirements.md").read_text())


def test_every_requirement_has_one_row_in_order() -> None:
    assert [number for number, _, _ in ROWS] == IDS


@pytest.mark.parametrize("number, shown_by", [pytest.param(row[0], row[2], id=row[0]) for row in ROWS])
def test_what_is_named_exists(number: str, shown_by: str) -> None:
    named = re.findall(r"`([^`]+)`", shown_by)
    assert named, f"{number} names no test"
    assert [test for test in named if not exists(test)] == []


def test_a_test_that_does_not_exist_would_be_noticed() -> None:
    assert exists("tests/acceptance/test_requirements.py::test_what_is_named_exists")
    assert not exists("tests/acceptance/test_requirements.py::test_that_nobody_wrote")
    assert not exists("tests/acceptance/test_requirements.py::exists")
    assert not exists("tests/acceptance/test_of_nothing.py::test_what_is_named_exists")
    assert not exists("tests/acceptance/test_requirements.py")


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return name in collected_from(path)


@functools.cache
def collected_from(path: str) -> frozenset[str]:
    """Names that pytest finds at the top of a file: functions, and classes with tests of their own or of others."""
    file = ROOT / path
    body = ast.parse(file.read_text()).body if file.is_file() else []
    named = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return frozenset(name for name in named if re.match("test_|Test", name))
