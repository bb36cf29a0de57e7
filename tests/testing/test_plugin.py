"""The plugin costs nothing where nobody uses it, and brings its own server where nobody names one."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.patience import seconds_left
from tests.testing.project import run_pytest

from fenceline.pytest_plugin import FOLDERS

ROOT = Path(__file__).parents[2]

TESTS = """
import os, pytest

@pytest.mark.parametrize("number", range(4))
async def test_an_empty_app(fenceline_app, number):
    @fenceline_app.job
    async def double(number: int) -> int:
        return 2 * number

    job = await double.enqueue(number=number)
    assert await fenceline_app.drain() == 1
    assert await job.result() == 2 * number
    await fenceline_app.assert_enqueued("double", count=1)

@pytest.mark.fenceline(deliver="inline")
def test_wrong_name(fenceline_app): ...

@pytest.mark.fenceline(delivery="in-line")
def test_wrong_delivery(fenceline_app): ...

def test_its_server(fenceline_dsn):
    print("SERVER", fenceline_dsn)
"""


def test_loading_it_imports_nothing_heavy() -> None:
    program = "import sys, pytest; old = {*sys.modules}; import fenceline.pytest_plugin; print(*{*sys.modules} - old)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds_left())
    assert set(done.stdout.split()) == {"fenceline", "fenceline.pytest_plugin"}


def test_pytest_finds_it_by_its_entry_point() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["entry-points"]["pytest11"] == {"fenceline": "fenceline.pytest_plugin"}


def test_a_project_that_does_not_use_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\ndef test_plain():\n"
        "    assert not {'asyncpg', 'fenceline.public', 'fenceline.testing'} & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path, "-W", "error", "--strict-markers", "--strict-config")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_server_it_starts_one_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FENCELINE_TEST_DSN", raising=False)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nfilterwarnings = error\n")
    (tmp_path / "test_empty.py").write_text(TESTS)
    done = run_pytest(tmp_path, "-rP", "-n", "2")
    assert "5 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert "has no deliver: it takes app= and delivery=" in done.stdout
    assert "a test cannot have the delivery 'in-line': use postgres or inline" in done.stdout
    server = re.search(r"SERVER postgresql://.*?(fenceline-test-\d+-\w+)", done.stdout)
    assert server is not None, done.stdout
    assert [folder for folder in FOLDERS if (Path(folder) / server[1]).exists()] == []
