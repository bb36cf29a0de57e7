"""The blocking twin is what its generator makes of the async verbs."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "generate_sync.py"


def test_the_twin_is_up_to_date() -> None:
    check = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stderr
