"""A Django project that used Celery: a worker finds its settings, tasks and database, and lost connections heal."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import seconds_left

PROJECT = Path(__file__).with_name("django_project")


def test_a_project_runs_with_the_imports_changed(database: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"FENCELINE_DSN", "PYTHONPATH"}}
    done = subprocess.run(
        [sys.executable, "heal.py"],
        cwd=PROJECT,
        env={**environment, "DATABASE_URL": database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.stdout == "healed\n", done.stderr
