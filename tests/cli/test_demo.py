"""`fenceline demo`, the real program: its ledger is clean, and it is not when the fence is taken out."""

import contextlib
import os
import pty
import re
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.sql.mutants import MUTANTS
from tests.support.patience import seconds_left

from fenceline.cli.demo.ledger import Ending, Ledger, Line, check

FENCELINE = Path(sysconfig.get_path("scripts")) / "fenceline"
JOBS = "1000"
VERDICT = re.compile(r"([\d,]+) done, ([\d,]+) lost, ([\d,]+) stale writes refused")


def run(folder: Path, *options: str, dsn: str | None = None) -> tuple[int, str]:
    """In a terminal, as a person sees it: exit code and what was on the screen."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCELINE_")}
    environment |= {"TERM": "xterm", "COLUMNS": "120"}
    if dsn is not None:
        environment["FENCELINE_DSN"] = dsn
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [FENCELINE, "demo", *options], env=environment, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen = b""
    with process:
        try:
            with contextlib.suppress(OSError):  # the terminal is closed: the program has ended
                while read := os.read(ours, 65536):
                    screen += read
            code = process.wait(seconds_left())
        finally:
            os.close(ours)
            process.terminate()  # it ends its workers
    return code, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.decode())


@pytest.mark.xdist_group("demo")
@pytest.mark.timeout(1800)  # a fleet of workers, killed and frozen
def test_the_ledger_is_clean(tmp_path: Path) -> None:
    code, screen = run(tmp_path, "--jobs", JOBS)
    assert code == 0, screen
    verdict = VERDICT.search(screen)
    assert verdict is not None
    assert verdict[1] == "1,000"
    assert verdict[2] == "0"
    assert int(verdict[3]) > 0
    assert "1000/1000" in screen, "the bar is full"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.xdist_group("demo")
@pytest.mark.timeout(1800)  # as above
def test_without_the_fence_the_ledger_does_not_hold(tmp_path: Path, database: str) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == "finish_without_fence"]
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(mutant.sql().encode())
    code, screen = run(tmp_path, "--jobs", JOBS, dsn=database)
    assert code == 1, screen
    assert "The ledger does not hold" in screen
    # The other worker's handler was told that its attempt is gone, or came to its end in vain.
    assert re.search("did not run to its end|carries the result of a stale attempt", screen), screen


def test_a_database_without_the_schema_is_one_line(tmp_path: Path, empty_database: str) -> None:
    code, screen = run(tmp_path, dsn=empty_database)
    assert code == 1
    assert "run `fenceline migrate`" in screen
    assert "Traceback" not in screen


# The ledger's own judgement ------------------------------------------------------------------------------------------

LINES = [
    Line("start", 1, "a", 1, 10, 1.0),
    Line("start", 1, "b", 2, 11, 2.0),
    Line("end", 1, "a", 1, 10, 2.5),
    Line("end", 1, "b", 2, 11, 3.0),
]
LOST = Ending(1, "a", 1, "lost", final=False, result=None)
DONE = Ending(1, "b", 2, "succeeded", final=True, result="b")


def test_an_honest_ledger_passes() -> None:
    assert check([1], LINES, [LOST, DONE]) == []


@pytest.mark.parametrize(
    "endings, complaint",
    [
        ([LOST], "0 terminal writes"),
        ([LOST, DONE, DONE], "2 terminal writes"),
        ([replace(DONE, outcome="failed")], "job 1 failed"),
        ([replace(DONE, attempt_id="c", token=3, result="c")], "did not run to its end"),
        ([replace(DONE, attempt_id="a", token=1, result="a")], "not the last one claimed"),
        ([LOST, replace(DONE, result="a")], "result of a stale attempt"),
    ],
)
def test_what_does_not_hold_is_said(endings: list[Ending], complaint: str) -> None:
    wrong = check([1], LINES, endings)
    assert complaint in " ".join(wrong)


def test_a_job_from_nowhere_is_found() -> None:
    assert check([], LINES[:1], []) == ["job 1 ran and was never enqueued"]


def test_handlers_at_once_are_counted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.lines = [
        Line("start", 1, "a", 1, 10, 1.0),
        Line("start", 2, "b", 1, 10, 2.0),
        Line("end", 1, "a", 1, 10, 2.5),
        Line("start", 3, "c", 1, 10, 3.0),
        Line("end", 2, "b", 1, 10, 3.5),
        Line("end", 3, "c", 1, 10, 4.0),
    ]
    assert ledger.most_at_once({1, 2, 3}, 0.0, 9.0) == 2
    assert ledger.most_at_once({1, 2, 3}, 2.6, 9.0) == 1


def test_half_a_line_is_read_later(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.path.write_text("start 1 a 1 10 1.0\nend 1 a ")
    ledger.refresh()
    assert ledger.done == set()
    with ledger.path.open("a") as file:
        file.write("1 10 2.0\n")
    ledger.refresh()
    assert ledger.done == {1}
