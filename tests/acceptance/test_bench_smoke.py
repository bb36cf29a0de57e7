"""`make bench` works, and the figures that are exact hold: bytes are counted, times are not judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import seconds_left

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(1800)  # three benchmarks
def test_the_write_ahead_log_the_locks_and_the_statements_stay_within_their_budgets(tmp_path: Path) -> None:
    # On a server of its own: other tests write to the log too.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks",
            "--quick",
            "--only",
            "wal",
            "prune",
            "fan_in",
            "--json",
            str(tmp_path / "figures.json"),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    results = figures["results"] if isinstance(figures, dict) else figures
    assert len(results) == 5
    for result in results:
        assert 0 < result["ours"] <= result["target"], result
