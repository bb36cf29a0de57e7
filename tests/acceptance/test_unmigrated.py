"""A database without Fenceline's schema says `run fenceline migrate` to everybody."""

import os
import subprocess
import sys
from pathlib import Path

import asyncpg
import psycopg
import pytest
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.errors import SchemaMissing

HINT = "run `fenceline migrate`"
COMMANDS = [
    ["jobs", "list"],
    ["enqueue", "work"],
    ["depth"],
    ["token", "create", "--role", "viewer"],
    ["doctor"],
    ["worker", "plain:app"],
    ["worker", "plain:app", "--once"],
    ["server", "plain:app"],
    ["up"],
]
PROGRAM = """
from fenceline import Fenceline

app = Fenceline()


@app.job
async def work() -> None: ...
"""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_what_to_run(empty_database: str, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "plain.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "fenceline", *command],
        cwd=tmp_path,
        env={**os.environ, "FENCELINE_DSN": empty_database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert HINT in " ".join(said.split()), said
    assert "Traceback" not in said


async def test_every_way_of_python_says_what_to_run(empty_database: str) -> None:
    async with Fenceline(empty_database) as app:

        @app.job
        async def work() -> None: ...

        for verb in (work.enqueue, lambda: work.enqueue_many([{}]), app.run_worker, app.jobs.list):
            with pytest.raises(SchemaMissing, match=HINT):
                await verb()
        with pytest.raises(SchemaMissing, match=HINT):
            work.sync.enqueue()


async def test_a_connection_of_the_callers_own_says_so_too(empty_database: str) -> None:
    app = Fenceline(empty_database)
    connection = await asyncpg.connect(empty_database)
    async with await psycopg.AsyncConnection.connect(empty_database) as other:
        for given in (connection, other):
            with pytest.raises(SchemaMissing, match=HINT):
                await app.enqueue("work", connection=given)
    with psycopg.connect(empty_database) as blocking, pytest.raises(SchemaMissing, match=HINT):
        app.sync.enqueue("work", connection=blocking)
    await connection.close()
    await app.close()
