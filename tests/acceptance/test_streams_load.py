"""A hundred people watch a job each, on a real server. How soon they see what happens is for `make bench`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.figures import Figures
from tests.support.patience import seconds_left

ROOT = Path(__file__).parent.parent.parent


def watch(tmp_path: Path) -> dict[str, float]:
    """What was measured, by its name."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
    measured = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "streams", "--json", str(measured)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {result["measurement"]: result["ours"] for result in json.loads(measured.read_text())["results"]}


def test_all_see_the_end_and_one_connection_listens(tmp_path: Path) -> None:
    results = watch(tmp_path)
    assert results["streams that missed the end"] == 0
    assert results["listening connections"] == 1


@pytest.mark.timing
def test_no_status_is_missed_the_database_is_hardly_asked_and_little_memory_taken(
    tmp_path: Path, figures: Figures
) -> None:
    """For 200 changes a second, however many watch. A server that falls behind skips to the latest status."""
    results = watch(tmp_path)
    figures.at_most("streams that missed a status", results["streams that missed a status"], 0, "streams")
    statements, memory = (
        results["statements of the server meanwhile"],
        results["memory of the server, 100 streams"],
    )
    assert min(statements, memory) > 0
    figures.at_most("statements of the server, 100 streams", statements, 60, "statements")
    figures.at_most("memory of the server, 100 streams", memory, 400, "MB")
