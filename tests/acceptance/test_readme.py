"""The README's lines do what they say, as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_ten_lines_run_as_printed(database: str, tmp_path: Path) -> None:
    program = tmp_path / "ten_lines.py"
    program.write_text(code_blocks("python")[0])
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
    assert re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z][0-9A-Z*~$=] \{'rows': 22000\}\n", done.stdout)


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in code_blocks("sh")[0].splitlines():
        assert line.split()[0] == "make"
        assert line.split()[1] in targets
