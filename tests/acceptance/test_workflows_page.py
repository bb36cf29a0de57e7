"""docs/workflows.md is a program, and prints what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "workflows.md"


def test_the_page_runs_as_printed(database: str, tmp_path: Path) -> None:
    text = PAGE.read_text()
    program = tmp_path / "workflows.py"
    program.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "FENCELINE_DSN": database},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
