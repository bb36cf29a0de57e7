"""The README's lines do what they say, as printed."""

import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.acceptance.printed_program import ROOT, code_blocks, run_python

README = ROOT / "README.md"


def test_the_ten_lines_run_as_printed(database: str, tmp_path: Path) -> None:
    (tmp_path / "ten_lines.py").write_text(code_blocks(README, "python")[0])
    printed = run_python(database, tmp_path, "ten_lines.py")
    assert re.fullmatch(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{3} \{'rows': 22000\}\n", printed)


def test_the_ten_lines_are_an_app_for_a_worker(database: str, tmp_path: Path) -> None:
    (tmp_path / "ten_lines.py").write_text(code_blocks(README, "python")[0])
    enqueue = "import ten_lines; ten_lines.ingest.sync.enqueue(path='a'); ten_lines.app.sync.close()"
    run_python(database, tmp_path, "-c", enqueue)
    run_python(database, tmp_path, "-m", "fenceline", "worker", "ten_lines:app", "--once")


async def test_the_other_options_run_as_printed(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_DSN", database)
    monkeypatch.chdir(tmp_path)
    ten_lines, options = code_blocks(README, "python")
    names: dict[str, Any] = {"__name__": "ten_lines"}
    exec(ten_lines, names)  # noqa: S102 - our own page
    in_function = "async def page(conn):\n" + "\n".join(f"    {line}" for line in options.splitlines())
    exec(in_function, names)  # noqa: S102 - as above
    connection = await asyncpg.connect(database)
    await names["page"](connection)
    assert await connection.fetchval("select count(*) from fenceline.jobs where kind = 'ingest'") == 6
    await connection.close()
    await names["app"].close()


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in code_blocks(README, "sh")[0].splitlines():
        assert line.split()[0] == "make"
        assert line.split()[1] in targets
