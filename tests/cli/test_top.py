"""`fenceline top` in a real terminal, on real jobs."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.cli.program import FENCELINE, Hands, Program
from tests.cli.terminal import Terminal

from fenceline.cli.top import TERMINATED

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
    top.until_line("interactive", "0.1")  # one end in the last ten seconds
    top.until(jobs[0], gone=True)
    top.press("q")
    assert top.exit_code() == 0


def test_it_names_the_suspects_of_a_crash(top: Terminal, hands: Hands) -> None:
    assert "alone" not in top.text
    hands.enqueue_many(3, lane="interactive")
    held = [hands.start(hands.claim("interactive")) for _ in range(2)]
    assert hands.value("select fenceline.report_crash(%s)", hands.worker) == 2
    top.until_line("interactive", "0/2", "3", "2 to run alone")
    hands.worker = hands.register()
    assert hands.claim("interactive", alone=True).id in {one.id for one in held}
    top.until_line("interactive", "1/2", "1 to run alone, 1 running alone")
    top.press("q")
    assert top.exit_code() == 0


def test_keys_drain_and_resume_a_lane(top: Terminal, hands: Hands) -> None:
    top.press(DOWN + "d")
    top.until("Drain lane interactive?")
    assert hands.value("select enabled from fenceline.lane where name = 'interactive'")
    top.press("y")
    top.until_line("▊  y")
    top.press(ENTER)
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


def test_it_ends_with_its_terminal(top: Terminal) -> None:
    assert top.shut() == TERMINATED


def test_it_can_be_stopped_when_its_terminal_is_paused(top: Terminal) -> None:
    """As with Ctrl-S: what it shows is not taken, until it waits for that."""
    while top.is_busy(for_seconds=1.0):
        for _ in range(20):
            top.press("?")
            time.sleep(0.02)
    assert top.terminate() == TERMINATED


def test_without_a_terminal_it_says_what_to_use_instead(fenceline: Program) -> None:
    assert "fenceline lanes list --json" in fenceline("top").error


def test_enter_opens_the_page_of_a_job_with_its_reason_error_and_log(top: Terminal, hands: Hands) -> None:
    job = hands.enqueue("ingest", max_attempts=1)
    held = hands.start(hands.claim())
    line = '[{"message": "reading page seven", "level": "info"}]'
    hands.value("select fenceline.write_log(%s, %s, %s::jsonb)", held.job_id, held.attempt_id, line)
    top.until_line(job, "running")
    top.press(TAB + ENTER)
    top.until("It runs on hands", "reading page seven")
    top.press(ESCAPE)
    top.until("reading page seven", gone=True)
    hands.finish(held, "failed", error={"type": "KeyError", "message": "no key", "traceback": "File top_test"})
    top.until_line(job, "failed", "KeyError: no key")
    top.until_line("default", "1")  # failures of the lane
    top.press(ENTER)
    top.until("traceback of attempt 1", "File top_test")
    top.press("q")
    top.until("File top_test", gone=True)
    top.press("t")
    hands.until("select count(*) > 0 from fenceline.ready")


def test_slash_filters_and_the_question_mark_lists_the_keys(top: Terminal, hands: Hands) -> None:
    mail, ingest = hands.enqueue("mail"), hands.enqueue("ingest")
    top.until(mail, ingest)
    top.press("/")
    top.until("Show jobs with this word")
    top.press("mail")
    top.until_line("▊  mail")
    top.press(ENTER)
    top.until(ingest, gone=True)
    top.until(mail, "jobs with 'mail'")
    top.press("?")
    top.until("approve or reject a job")
    top.press(ESCAPE)
    top.until("approve or reject a job", gone=True)


def test_slash_finds_jobs_that_are_not_listed(top: Terminal, hands: Hands) -> None:
    ended = hands.enqueue("old")
    hands.finish(hands.start(hands.claim()))
    buried = hands.enqueue("pay")
    hands.enqueue_many(40, "mail")  # more than are shown
    top.until_line("default", "41")
    top.until(buried, gone=True)  # lanes and jobs are asked for one after the other
    for word, job in (("pay", buried), (ended.lower().replace("-", ""), ended)):
        top.press("/")
        top.until("Show jobs with this word")
        top.press(word)
        top.until_line(f"▊  {word}")
        top.press(ENTER)
        top.until(job)


def test_a_server_that_delivers_webhooks_is_no_worker(top: Terminal, hands: Hands) -> None:
    hands.value("select fenceline.register_worker('server@here', 30, p_lanes => '{webhooks}')")
    top.until("server@here", "1 worker ")


def test_approve_and_reject(top: Terminal, hands: Hands) -> None:
    job = hands.enqueue("pay", needs_approval=True)
    top.until_line(job, "awaiting_approval")
    top.press(TAB + "a")
    top.until_line(job, "queued")
    other = hands.enqueue("pay", needs_approval=True, priority=1)
    top.until_line(other, "awaiting_approval")
    assert hands.status(job) == "queued"


def test_a_dead_worker_is_lost_and_not_counted(top: Terminal, hands: Hands) -> None:
    hands.register()
    top.until("2 workers")
    hands.value(
        "update fenceline.worker set lease_until = now() - interval '1 second' where id = %s returning id", hands.worker
    )
    top.until("1 worker ", "1 lost")


def test_it_shows_what_doctor_finds(top: Terminal, hands: Hands) -> None:
    hands.enqueue_many(1, "ingest", lane="interactive")
    hands.value("select fenceline.stop_worker(%s)", hands.worker)
    top.until_line("doctor:", "lane_without_workers interactive")
    top.press("f")
    top.until("lane_without_workers  interactive", "do: ", "fenceline worker APP")
    top.press(ESCAPE)
    top.until("hurts: all jobs", gone=True)
    top.press("q")
    assert top.exit_code() == 0
