"""`fenceline top` in a real terminal, on real jobs."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.cli.program import FENCELINE, Hands, Program
from tests.cli.terminal import Terminal

DOWN, ESCAPE, ENTER, TAB = "\x1b[B", "\x1b", "\r", "\t"


@pytest.fixture
def top(fenceline: Program, hands: Hands) -> Iterator[Terminal]:
    command = [FENCELINE, "top", "--interval", "0.3"]
    with Terminal(command, folder=fenceline.folder, environment=fenceline.environment) as terminal:
        terminal.until("workers", "hands", "interactive", "Drain lane")
        yield terminal


def test_it_shows_lanes_jobs_and_workers_as_they_change(top: Terminal, hands: Hands) -> None:
    assert "0 running" in top.text
    jobs = hands.enqueue_many(3, "ingest", lane="interactive")
    top.until_line("interactive", "░░░░░░░░░░░░  0/2", "3")
    held = hands.start(hands.claim("interactive"))
    hands.progress(held, "inventory", done=1, total=4, message="reading")
    top.until_line("interactive", "██████░░░░░░  1/2", "2")
    line = top.until_line(jobs[0], "running")
    assert "ingest" in line
    assert "hands" in line
    top.until_line(jobs[0], "inventory ███░░░░░░░░░ 1/4 reading")
    top.until_line("hands", "1", "default, interactive")
    hands.finish(held)
    top.until(jobs[0], gone=True)
    top.until_line("interactive", "0.1")  # one end in the last ten seconds
    top.press("q")
    assert top.exit_code() == 0


def test_keys_drain_and_resume_a_lane(top: Terminal, hands: Hands) -> None:
    top.press(DOWN + "d")
    top.until_line("interactive", "drained")
    assert not hands.value("select enabled from fenceline.lane where name = 'interactive'")
    top.press("r")
    top.until("drained", gone=True)
    assert hands.value("select enabled from fenceline.lane where name = 'interactive'")
    assert hands.value("select count(*) from fenceline.event where actor like '%%@%%'") == 2


def test_keys_cancel_and_reprioritise_the_job_under_the_cursor(top: Terminal, hands: Hands) -> None:
    older, newer = hands.enqueue_many(2)
    top.until(older, newer)
    top.press(TAB + DOWN + "p")
    top.until(f"Priority of {older}")
    top.press("42")
    top.until("42")
    top.press(ENTER)
    top.until_line(older, "42")
    # A new job on top of the list does not move the cursor to another job.
    third = hands.enqueue()
    top.until(third)
    top.press("c")
    top.until(f"Cancel {older}?")
    top.press(ESCAPE)
    top.until("Cancel 0", gone=True)
    assert hands.status(older) == "queued"
    top.press("c")
    top.until(f"Cancel {older}?")
    top.press("y")
    top.until_line("▊  y")
    top.press(ENTER)
    top.until(older, gone=True)
    assert hands.statuses([older]) == {"cancelled"}
    assert hands.statuses([newer, third]) == {"queued"}


def test_what_cannot_be_done_is_said_and_life_goes_on(top: Terminal, hands: Hands) -> None:
    job = hands.enqueue()
    hands.start(hands.claim())
    top.until_line(job, "running")
    top.press(TAB + "p")
    top.until(f"Priority of {job}")
    top.press("5")
    top.until_line("▊  5")
    top.press(ENTER)
    top.until("reprioritised")
    top.press("q")
    assert top.exit_code() == 0


def test_it_survives_a_database_that_goes_away(
    top: Terminal, hands: Hands, administrator: "psycopg.Connection[Any]"
) -> None:
    name, kept = hands.value("select current_database()"), hands.value("select pg_backend_pid()")
    administrator.execute(f'alter database "{name}" with allow_connections false')
    administrator.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> %s", (name, kept)
    )
    top.until("trying again")
    administrator.execute(f'alter database "{name}" with allow_connections true')
    top.until("trying again", gone=True)
    job = hands.enqueue()
    top.until(job)


def test_without_a_terminal_it_says_what_to_use_instead(fenceline: Program) -> None:
    assert "fenceline lanes list --json" in fenceline("top").error
