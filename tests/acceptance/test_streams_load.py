"""A hundred people watch a job each, on a real server: what can be counted is exact. How soon, is for `make bench`."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_no_status_is_missed_and_the_database_is_hardly_asked(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "streams", "--json", str(figures)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = {result["measurement"]: result["ours"] for result in json.loads(figures.read_text())["results"]}
    assert results["streams that missed a status"] == 0
    assert results["listening connections"] == 1
    assert 0 < results["statements of the server meanwhile"] <= 60  # for 200 changes a second, however many watch
    assert 0 < results["memory of the server, 100 streams"] <= 400
