"""The verbs that change jobs: one, several, or all that match."""

import re
from collections.abc import Callable

import pytest
from tests.cli.program import FENCELINE, Hands, Program
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal_of(fenceline: Program) -> Callable[..., Terminal]:
    def start(*arguments: str) -> Terminal:
        return Terminal([FENCELINE, *arguments], folder=fenceline.folder, environment=fenceline.environment)

    return start


def test_one_job_is_done_without_a_question(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    assert fenceline("jobs", "reprioritise", job, "7").out == f"{job} priority 7\n"
    assert fenceline("jobs", "reprioritise", job, "--priority", "-3").out == f"{job} priority -3\n"
    assert hands.value("select priority from fenceline.ready") == -3
    assert fenceline("jobs", "cancel", job.lower().replace("-", "")).out == f"{job} cancelled\n"
    retried = re.fullmatch(rf"{re.escape(job)} retried as (\S+)\n", fenceline("jobs", "retry", job).out)
    assert retried is not None
    assert hands.status(retried[1]) == "queued"
    held = hands.claim()
    assert fenceline("jobs", "cancel", held.id).out == f"{held.id} asked to stop\n"
    assert hands.status(held.id) == "claimed"
    assert fenceline("jobs", "cancel", held.id, "--force").out == f"{held.id} cancelled\n"
    assert hands.status(held.id) == "cancelled"


def test_approve_and_reject(fenceline: Program, hands: Hands) -> None:
    first, second = hands.enqueue_many(2, needs_approval=True)
    assert fenceline("jobs", "approve", first).out == f"{first} approved, now queued\n"
    assert fenceline("jobs", "reject", second).out == f"{second} rejected, now cancelled\n"


def test_a_program_is_told_to_say_yes(fenceline: Program, hands: Hands) -> None:
    jobs = hands.enqueue_many(3, "mail")
    hands.enqueue("other")
    error = fenceline("jobs", "cancel", "--kind", "mail").error
    assert error == "this would cancel 3 jobs (3 queued; 3 mail): add --yes to do it without a question"
    assert fenceline("jobs", "cancel", "--kind", "mail", "--dry-run").out == "3 jobs to cancel: 3 queued; 3 mail\n"
    assert "this would cancel 3 jobs" in fenceline("jobs", "cancel", *jobs).error
    assert hands.statuses(jobs) == {"queued"}
    assert fenceline("jobs", "cancel", "--kind", "mail", "--yes").code == 0
    assert hands.statuses(jobs) == {"cancelled"}
    assert hands.value("select count(*) from fenceline.ready") == 1


def test_a_person_is_asked(hands: Hands, terminal_of: Callable[..., Terminal]) -> None:
    jobs = hands.enqueue_many(3, "mail")
    with terminal_of("jobs", "cancel", "--kind", "mail") as terminal:
        terminal.until("Cancel 3 jobs (3 queued; 3 mail)? [y/N]")
        terminal.press("n\r")
        assert terminal.exit_code() == 1
        assert "nothing was changed" in terminal.text
    assert hands.statuses(jobs) == {"queued"}
    with terminal_of("jobs", "cancel", "--kind", "mail") as terminal:
        terminal.until("[y/N]")
        terminal.press("y\r")
        assert terminal.exit_code() == 0
        assert terminal.text.count("cancelled") == 3
    assert hands.statuses(jobs) == {"cancelled"}


def test_long_work_shows_a_progress_bar(hands: Hands, terminal_of: Callable[..., Terminal]) -> None:
    jobs = hands.enqueue_many(1500, "mail")
    with terminal_of("jobs", "cancel", "--all", "--yes") as terminal:
        assert terminal.exit_code() == 0
        assert "1,500 jobs cancelled" in terminal.text
        shown = [int(done) for done in re.findall(rb"(\d+)/1500", terminal.raw)]
    assert any(0 < done < 1500 for done in shown), shown
    assert hands.value("select count(*) from fenceline.history where final and outcome = 'cancelled'") == len(jobs)


def test_retries_keep_the_order_of_a_workflow(fenceline: Program, hands: Hands) -> None:
    load = hands.finished("load")
    publish = hands.enqueue("publish", after=[load])
    assert hands.status(publish) == "cancelled"
    assert "Retry that one first" in fenceline("jobs", "retry", publish).error
    again = fenceline("jobs", "retry", load).out.split()[-1]
    fenceline("jobs", "cancel", again)  # so that the load to retry is younger than the publish
    done = fenceline("jobs", "retry", publish, again, "--yes", "--json").json
    assert {job["id"] for job in done["done"]} == {publish, again}
    assert done["not_done"] == []
    assert hands.value("select count(*) from fenceline.held where waiting_for = 'dependencies'") == 1


def test_filters_mean_what_the_verb_fits(fenceline: Program, hands: Hands) -> None:
    failed = hands.finished("ingest")
    succeeded = hands.finished("ingest", "succeeded")
    cancelled = hands.enqueue("ingest")
    fenceline("jobs", "cancel", cancelled)
    done = fenceline("jobs", "retry", "--kind", "ingest", "--yes", "--json").json
    assert [job["id"] for job in done["done"]] == [failed]
    assert done["not_done"] == []
    assert fenceline("jobs", "retry", "--status", "succeeded", "--dry-run", "--json").json == {"count": 1}
    assert "cannot be approved" in fenceline("jobs", "approve", "--status", "succeeded", "--yes").error
    assert hands.status(succeeded) == "succeeded"
    # Unfinished jobs only: the finished ones of the same kind are left alone.
    assert fenceline("jobs", "cancel", "--kind", "ingest", "--dry-run", "--json").json == {"count": 1}


def test_what_was_not_done_is_said(fenceline: Program, hands: Hands) -> None:
    ended = hands.finished()
    queued = hands.enqueue()
    ran = fenceline("jobs", "cancel", ended, queued, "--yes")
    assert ran.code == 1
    assert ran.out == f"{queued} cancelled\n"
    assert f"not done: job {ended}" in ran.err
    assert hands.status(queued) == "cancelled"


@pytest.mark.parametrize("which", [(), ("0003-G923-0VQV-SW0", "--kind", "x"), ("--all", "--kind", "x")])
def test_which_jobs_must_be_said_in_one_way(fenceline: Program, which: tuple[str, ...]) -> None:
    ran = fenceline("jobs", "cancel", *which)
    assert ran.code == 2
    assert "which jobs to cancel?" in ran.err


def test_a_priority_must_be_said(fenceline: Program, hands: Hands) -> None:
    assert "the new priority is missing" in fenceline("jobs", "reprioritise", hands.enqueue()).err
    assert "out of range" in fenceline("jobs", "reprioritise", hands.enqueue(), "--priority", "99999").error


def test_one_ctrl_c_at_the_question_is_enough(terminal_of: Callable[..., Terminal], hands: Hands) -> None:
    jobs = hands.enqueue_many(2)
    with terminal_of("jobs", "cancel", "--all") as terminal:
        terminal.until("Cancel 2 jobs", "[y/N]")
        terminal.press("\x03")
        assert terminal.exit_code() == 130
    assert hands.statuses(jobs) == {"queued"}
