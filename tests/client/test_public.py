"""`import fenceline` is quick, and all public names are there all the same."""

import json
import subprocess
import sys

import pytest

import fenceline
import fenceline.public


def test_every_public_name_is_found() -> None:
    for name in fenceline.public.__all__:
        assert getattr(fenceline, name) is getattr(fenceline.public, name)
    assert set(dir(fenceline)) == set(fenceline.__all__) == set(fenceline.public.__all__)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fenceline.nothing  # type: ignore[attr-defined]  # there is none, which is the point
    with pytest.raises(ImportError):
        from fenceline import nothing  # type: ignore[attr-defined]  # noqa: F401, PLC0415 - fails


def test_names_are_loaded_with_the_first_use() -> None:
    code = (
        "import sys, json, fenceline\n"
        "before = 'asyncio' in sys.modules\n"
        "fenceline.errors, fenceline.Fenceline\n"
        "print(json.dumps([before, 'asyncio' in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, True]
