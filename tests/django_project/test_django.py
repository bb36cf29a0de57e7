"""Fenceline in a Django project: the example of examples/integrations/django_shop, and Django's own test runner."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from tests.support.patience import seconds_left

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "integrations" / "django_shop"
CHECKS = Path(__file__).parent


def run_django_tests(python: str | Path, server: str, label: str) -> "subprocess.CompletedProcess[str]":
    address = urlsplit(server)
    options = {name: values[0] for name, values in parse_qs(address.query).items()}
    environment = {
        "PGDATABASE": f"fenceline_django_{uuid4().hex[:8]}",
        "PGHOST": options.get("host") or address.hostname or "",
        "PGUSER": address.username or "",
        "PGPORT": options.get("port") or str(address.port or 5432),
        "PGPASSWORD": address.password or "",
        "PYTHONPATH": os.pathsep.join([str(CHECKS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "DJANGO_SETTINGS_MODULE": "shop.settings",
    }
    return subprocess.run(
        [python, "manage.py", "test", label, "--noinput"],
        cwd=EXAMPLE,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )


@pytest.fixture
def django_6(tmp_path: Path) -> Path:
    """A Python with Django 6, which needs a newer Python than the oldest that Fenceline runs on."""
    folder = tmp_path / "venv"
    made = uv("venv", "--python", ">=3.12", "--no-python-downloads", folder)
    if made.returncode != 0:
        pytest.skip(f"Django 6 is not tested: there is no Python 3.12 or later ({made.stderr.strip()})")
    python = folder / "bin" / "python"
    installed = uv("pip", "install", "--python", python, "--editable", f"{ROOT}[django]", "django~=6.0")
    assert installed.returncode == 0, installed.stderr
    return python


def uv(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ)
    if shutil.which("pyenv"):  # whose commands work for the versions that are switched on
        versions = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=True)
        environment["PYENV_VERSION"] = ":".join(versions.stdout.split())
    return subprocess.run(
        [sys.executable, "-m", "uv", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )


def test_the_example_project_passes_its_checks(server: str) -> None:
    done = run_django_tests(sys.executable, server, "checks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Ran 21 tests", done.stderr)


@pytest.mark.timeout(1800)  # makes an environment
def test_with_django_6_too(server: str, django_6: Path) -> None:
    version = subprocess.run([django_6, "-m", "django", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("6.")
    done = run_django_tests(django_6, server, "checks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Ran 21 tests", done.stderr)


def test_the_example_is_short() -> None:
    lines = [line for path in EXAMPLE.rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) <= 100


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "guides" / "django.md").read_text()
    example = "\n".join(path.read_text() for path in EXAMPLE.rglob("*.py"))
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 5
    assert [block for block in blocks if block not in example] == []
