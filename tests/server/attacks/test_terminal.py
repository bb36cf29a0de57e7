"""What others wrote does not steer the terminal of whoever reads it."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from fenceline.cli import main
from fenceline.cli.exception_text import one_line
from fenceline.cli.queue import open_queue
from fenceline.cli.top_view import job_row, look, worker_row
from fenceline.context.log_output import configure_logging
from fenceline.errors import NotFound
from fenceline.model.visible import visible, visible_json

#: A title, a clear screen, a clipboard, a C1 escape, a line that reads backwards, an invisible tag, a carriage return.
STEERING = (
    "\x1b]0;owned\x07 \x1b[2J \x1b]52;c;ZWNobyBoaQ==\x07 \x9b31m "
    "\u202egnp.exe\u2069 \u2066 \U000e0041 ok\rfailed \x08\x7f"
)
FORBIDDEN = set(STEERING) - set(visible(STEERING))


@pytest.fixture
def hostile_job(database: str) -> Iterator[str]:
    """A job whose every text steers; its public id."""
    with psycopg.connect(database, autocommit=True) as connection:

        def scalar(sql: str, *values: object) -> Any:
            row = connection.execute(sql, values).fetchone()
            assert row is not None
            return row[0]

        # Names are checked in the database; of a server that is not ours they are whatever it says.
        options = json.dumps({"labels": {"project": STEERING}, "needs_approval": True})
        args = json.dumps({"path": STEERING})
        job = scalar("select job_id from fenceline.enqueue('work', %s, %s, %s)", args, options, STEERING)
        scalar("select fenceline.approve_job(%s, %s, %s)", job, f"b{STEERING}", STEERING)
        worker = scalar("select fenceline.register_worker(%s, 3600)", STEERING)
        attempt = scalar("select attempt_id from fenceline.claim_jobs(%s)", worker)
        lines = json.dumps([{"message": f"{STEERING}\n12:00:00.000 info    forged", "fields": {"path": STEERING}}])
        scalar("select fenceline.write_log(%s, %s, %s)", job, attempt, lines)
        scalar("select fenceline.set_progress(%s, %s, %s, %s)", job, attempt, STEERING, "{}")
        step = "select fenceline.record_step(%s, %s, 'load', p_error => %s)"
        scalar(step, job, attempt, json.dumps({"type": STEERING, "message": STEERING}))
        yield str(scalar("select fenceline.public_id(%s)", job))


def run(database: str, *command: str) -> Result:
    result = CliRunner().invoke(main, [*command], env={"FENCELINE_DSN": database, "FENCELINE_URL": None})
    assert result.exit_code == 0, result.output
    assert "owned" in result.output, command
    return result


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "list"), ("jobs", "show"), ("jobs", "logs"), ("jobs", "explain"), ("jobs", "phases"),
        ("jobs", "steps"), ("workers",), ("stats", "active"),
    ],
    ids=str,
)  # fmt: skip
def test_no_command_passes_it_on(
    database: str, hostile_job: str, command: tuple[str, ...], form: tuple[str, ...]
) -> None:
    job = (hostile_job,) if command[0] == "jobs" and command[1] != "list" else ()
    result = run(database, *command, *job, *form)
    assert not FORBIDDEN & set(result.output), command
    if form:
        # JSON says the same, in its own way.
        assert STEERING in set(texts(json.loads(result.output)))


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value.partition("\n")[0]
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def test_a_line_of_the_log_cannot_look_like_two(database: str, hostile_job: str) -> None:
    lines = run(database, "jobs", "logs", hostile_job).output.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("    12:00:00.000")


async def test_top_shows_it(database: str, hostile_job: str) -> None:
    async with open_queue(dsn=database, url=None, token=None) as queue:
        seen = await look(queue)
    assert hostile_job in {job.id for job in seen.jobs}
    cells = [cell.plain for job in seen.jobs for cell in job_row(job, seen.at)]
    cells += [cell.plain for worker in seen.workers for cell in worker_row(worker, seen.at)]
    assert "owned" in "".join(cells)
    assert not FORBIDDEN & set("".join(cells))


def test_errors_show_it() -> None:
    line = one_line(NotFound(f"job {STEERING} is not there"))
    assert line is not None
    assert "owned" in line
    assert not FORBIDDEN & set(line)


def test_the_workers_log_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure_logging("text")
        logging.getLogger("attack").warning("job %s", STEERING)
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    written = capsys.readouterr().err
    assert "owned" in written
    assert not FORBIDDEN & set(written)


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "Grüße, 日本語, 👩‍🚀, tab\there\nnext line, \\x1b written out"
    assert visible(text) == text
    assert visible("\x1b[31m\u202e") == "\\x1b[31m\\u202e"
    document = json.dumps({"a": STEERING}, ensure_ascii=False)
    assert json.loads(visible_json(document)) == {"a": STEERING}
    assert not FORBIDDEN & set(visible_json(document))
