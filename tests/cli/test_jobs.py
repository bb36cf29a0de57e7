"""`fenceline jobs list|show|steps|phases|logs`."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from tests.cli.program import FENCELINE, Hands, Held, Program
from tests.cli.terminal import Terminal
from tests.support.figures import Figures
from tests.support.patience import seconds_left

from fenceline.cli.jobs import collect
from fenceline.model.job import JobFilter, JobPage


def test_list_shows_what_is_there(fenceline: Program, hands: Hands) -> None:
    failed = hands.finished("ingest", lane="interactive")
    queued = hands.enqueue("mail", priority=7)
    gated = hands.enqueue("ingest", needs_approval=True)
    shown = fenceline("jobs", "list")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["ID", "KIND", "STATUS", "LANE", "PRIORITY", "ATTEMPT", "CREATED", "TOOK"]
    assert [line.split()[0] for line in lines[1:]] == [gated, queued, failed]
    assert lines[1].split()[1:6] == ["ingest", "awaiting_approval", "default", "0", "0/3"]
    assert lines[2].split()[1:6] == ["mail", "queued", "default", "7", "0/3"]
    assert lines[3].split()[1:6] == ["ingest", "failed", "interactive", "10", "1/3"]
    assert lines[3].endswith("it broke")


def test_filters_have_the_names_of_http(fenceline: Program, hands: Hands) -> None:
    one = hands.enqueue("ingest", labels={"project": "x"}, tenant="acme")
    two = hands.enqueue("mail", lane="interactive")
    three = hands.finished("ingest", priority=99)

    def found(*filters: str) -> list[str]:
        return [job["id"] for job in fenceline("jobs", "list", "--json", *filters).json["items"]]

    assert found() == [three, two, one]
    assert found("--kind", "ingest") == [three, one]
    assert found("--kind", "ingest", "--kind", "mail", "--status", "queued") == [two, one]
    assert found("--lane", "interactive") == [two]
    assert found("--tenant", "acme") == [one]
    assert found("--label", "project:x") == [one]
    assert found("--created-after", "1h") == [three, two, one]
    assert found("--created-before", "1h") == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert found("--created-after", tomorrow) == []
    assert found("--created-before", tomorrow, "--status", "failed") == [three]


def test_pages_go_on_from_a_cursor(fenceline: Program, hands: Hands) -> None:
    jobs = hands.enqueue_many(7)[::-1]
    first = fenceline("jobs", "list", "--limit", "4", "--json").json
    assert [job["id"] for job in first["items"]] == jobs[:4]
    rest = fenceline("jobs", "list", "--limit", "4", "--cursor", first["next_cursor"], "--json").json
    assert [job["id"] for job in rest["items"]] == jobs[4:]
    assert rest["next_cursor"] is None
    assert "There are more" in fenceline("jobs", "list", "--limit", "4").err
    assert "No such jobs" in fenceline("jobs", "list", "--kind", "nothing").err


async def test_a_list_asks_as_often_as_it_must() -> None:
    """One question for a page; more only where the scan behind a page was cut short."""
    asked: list[tuple[int, str | None]] = []

    class Asked:
        async def list_jobs(
            self,
            _which: JobFilter,
            *,
            limit: int,
            cursor: str | None = None,
            fields: Sequence[str] = (),  # noqa: ARG002 - as the queue takes it
        ) -> JobPage:
            asked.append((limit, cursor))
            return JobPage(items=[], next_cursor="more" if len(asked) == 1 else None)

    await collect(Asked(), JobFilter(), limit=50)  # type: ignore[arg-type]  # all that is needed of a queue
    assert asked == [(50, None), (50, "more")]


def test_json_has_the_names_of_http(fenceline: Program, hands: Hands) -> None:
    hands.enqueue("ingest", {"path": "ä"}, labels={"project": "x"})
    (job,) = fenceline("jobs", "list", "--json").json["items"]
    assert " ".join(job) == (
        "id kind status waiting_for lane priority tenant args labels attempt max_attempts created_at created_by run_at "
        "claimed_at started_at finished_at worker phase progress result error errors cancel_requested_at retry_of "
        "parent delivery backend_job_id runner snapshot_hash requires_hash identity after key key_limit resource_lock "
        "dedupe_key expires_at timeout group retry"
    )
    assert job["args"] == {"path": "ä"}
    assert job["status"] == "queued"
    assert datetime.fromisoformat(job["created_at"]).tzinfo is not None


def test_show_cuts_what_would_fill_the_screen(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("ingest", {"text": "x" * 100_000})
    shown = fenceline("jobs", "show", job).out
    assert len(shown) < 5000
    assert "… (100,012 characters; all of it with --json)" in " ".join(shown.split())
    assert fenceline("jobs", "show", job, "--json").json["args"] == {"text": "x" * 100_000}


def test_show_draws_the_timeline_of_attempts(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue("ingest", {"path": "[red]s3[/red]"})
    for outcome in ("failed", "released"):
        held = hands.start(hands.claim())
        hands.finish(held, outcome, error={"code": "error", "message": "no [bold]route[/bold]"})
        hands.connection.execute("update fenceline.timer set run_at = now()")
        hands.connection.execute("select fenceline.promote_timers()")
    held = hands.start(hands.claim())
    hands.progress(held, "inventory", done=3, total=4)
    shown = fenceline("jobs", "show", job)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == [job, "ingest", "running"]
    attempts = lines[lines.index("attempts") + 2 :]
    assert [line.split()[:2] for line in attempts] == [["#1", "failed"], ["#2", "released"], ["#2", "running"]]
    assert "█" in attempts[0]
    assert attempts[0].rstrip().endswith("no [bold]route[/bold]")
    assert "▶" in attempts[2]
    assert all("hands" in line for line in attempts)
    (progress,) = [line for line in lines if line.startswith("progress")]
    assert "inventory ███████████████░░░░░ 3/4" in progress
    assert '"[red]s3[/red]"' in shown.out


def test_show_tells_what_operators_did(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue(needs_approval=True)
    assert fenceline("jobs", "approve", job, "--reason", "looks good").code == 0
    assert fenceline("jobs", "cancel", job, "--reason", "on second thought").code == 0
    as_json = fenceline("jobs", "show", job, "--json").json
    assert as_json["status"] == "cancelled"
    assert [attempt["outcome"] for attempt in as_json["attempts"]] == ["cancelled"]
    told = {event["event"]: event for event in as_json["events"]}
    assert set(told) == {"job.enqueue", "job.approve", "job.cancel", "job.end"}
    assert told["job.approve"]["reason"] == "looks good"
    assert told["job.cancel"]["reason"] == "on second thought"
    assert "@" in told["job.cancel"]["actor"]
    shown = fenceline("jobs", "show", job).out
    assert "◆" in shown
    assert "on second thought" in shown


def test_logs_are_printed_in_order_of_attempts(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    for attempt in (1, 2):
        held = hands.claim()
        hands.log(held, *({"message": f"attempt {attempt} line {line}", "fields": {"n": line}} for line in range(3)))
        hands.finish(held, "released" if attempt == 1 else "succeeded")
    lines = fenceline("jobs", "logs", job).out.splitlines()
    assert [line.split("info")[1].strip() for line in lines] == [
        f"attempt {attempt} line {line} n={line}" for attempt in (1, 2) for line in range(3)
    ]
    assert len(fenceline("jobs", "logs", job, "--tail", "2").out.splitlines()) == 2
    records = [json.loads(line) for line in fenceline("jobs", "logs", job, "--json").out.splitlines()]
    assert [record["message"] for record in records] == [
        line.split("info")[1].split(" n=")[0].strip() for line in lines
    ]
    assert set(records[0]) == {"token", "line", "at", "level", "message", "fields"}


def test_more_lines_than_one_read_gives(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    held = hands.claim()
    for batch in range(3):
        hands.log(held, *({"message": f"line {batch * 700 + n}"} for n in range(700)))
    lines = fenceline("jobs", "logs", job, "--json").out.splitlines()
    assert [json.loads(line)["message"] for line in lines] == [f"line {n}" for n in range(2100)]


@contextmanager
def followed(fenceline: Program, hands: Hands, held: Held) -> Iterator["subprocess.Popen[str]"]:
    """`fenceline jobs logs -f`, which has shown the first line."""
    hands.log(held, {"message": "first"})
    with subprocess.Popen(
        [FENCELINE, "jobs", "logs", "-f", held.id],
        cwd=fenceline.folder,
        env={**fenceline.environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        guard = threading.Timer(seconds_left(), following.kill)
        guard.start()
        try:
            assert following.stdout is not None
            assert "first" in following.stdout.readline()
            yield following
        finally:
            guard.cancel()
            following.kill()


def test_follow_goes_on_until_the_job_ends(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    held = hands.claim()
    with followed(fenceline, hands, held) as following:
        assert following.stdout is not None
        hands.log(held, {"message": "second"})
        assert "second" in following.stdout.readline()
        hands.log(held, {"message": "last"})
        hands.finish(held, "failed_for_good", error={"message": "it broke"})
        out, err = following.communicate()
    assert following.returncode == 0
    assert out.count("\n") == 1
    assert "last" in out
    assert err == f"{job} failed: it broke\n"


@pytest.mark.timing
def test_follow_shows_a_line_soon(fenceline: Program, hands: Hands, figures: Figures) -> None:
    hands.enqueue()
    held = hands.claim()
    with followed(fenceline, hands, held) as following:
        assert following.stdout is not None
        hands.log(held, {"message": "second"})
        logged_at = time.monotonic()
        assert "second" in following.stdout.readline()
        figures.at_most("a line of the log is shown after", time.monotonic() - logged_at, 5)


def test_ctrl_c_ends_follow_without_a_word(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    held = hands.claim()
    hands.log(held, {"message": "first"})
    command = [FENCELINE, "jobs", "logs", "-f", job]
    with Terminal(command, folder=fenceline.folder, environment=fenceline.environment) as terminal:
        terminal.until("first")
        terminal.press("\x03")
        assert terminal.exit_code() == 130
        assert "Traceback" not in terminal.text
        assert "Aborted" not in terminal.text


def test_a_narrow_terminal_leaves_out_columns_and_never_cuts_an_id(fenceline: Program, hands: Hands) -> None:
    hands.enqueue("ingest", lane="interactive", needs_approval=True)
    failed = hands.enqueue("ingest")
    hands.finish(hands.claim(), "failed_for_good", error={"code": "error", "message": "it broke, " * 30})
    lines = {}
    for columns in (60, 80, 120):
        with Terminal(
            [FENCELINE, "jobs", "list"],
            folder=fenceline.folder,
            environment=fenceline.environment,
            columns=columns,
        ) as terminal:
            terminal.until(failed)
            assert terminal.exit_code() == 0
            lines[columns] = terminal.line(failed)
    assert "failed" in lines[60]
    assert "ago" in lines[80]
    assert "default" in lines[80]
    assert "it broke" in lines[120]


def test_show_gives_a_traceback_a_place_of_its_own(fenceline: Program, hands: Hands) -> None:
    job = hands.enqueue()
    error = {"code": "error", "message": "no [route]", "type": "E", "traceback": "Traceback:\n  File x\n", "host": "a"}
    hands.finish(hands.claim(), "failed_for_good", error=error)
    shown = fenceline("jobs", "show", job).out.splitlines()
    assert 'error     error: E: no [route] {"host": "a"}' in shown
    place = shown.index("traceback of attempt 1")
    assert shown[place + 1 : place + 3] == ["Traceback:", "  File x"]
    assert [line for line in shown if line != line.rstrip()] == []


def test_steps_and_what_each_gave(fenceline: Program, hands: Hands) -> None:
    job = hands.worked()
    lines = [line.split() for line in fenceline("jobs", "steps", job).out.splitlines()]
    assert lines == [
        ["STEP", "STATUS", "TOOK", "RESULT"],
        ["fetch", "done", "1.5", "s", '{"pages":', "7}"],
        ["index", "failed", '{"message":', '"broken"}'],
        ["publish", "listed"],
    ]
    items = fenceline("jobs", "steps", job, "--json").json["items"]
    assert [(step["name"], step["status"], step["result"]) for step in items] == [
        ("fetch", "done", {"pages": 7}),
        ("index", "failed", None),
        ("publish", "listed", None),
    ]


def test_phases_and_their_items(fenceline: Program, hands: Hands) -> None:
    job = hands.worked()
    head, load, store = fenceline("jobs", "phases", job).out.splitlines()
    assert head.split() == ["PHASE", "ATTEMPT", "TOOK", "PROGRESS"]
    assert (load.split()[:2], store.split()[:2]) == (["load", "1"], ["store", "1"])
    assert load.endswith("2 completed, 1 skipped")
    assert store.endswith("1/2")
    items = fenceline("jobs", "phases", job, "--json").json["items"]
    assert [(phase["phase"], phase["progress"].get("items")) for phase in items] == [
        (
            "load",
            {
                "in_progress": [],
                "completed": ["a", "b"],
                "skipped": [{"item": "c", "reason": "closed"}],
                "failed": [],
            },
        ),
        ("store", None),
    ]


def test_steps_and_phases_of_a_job_that_is_not_there(fenceline: Program, hands: Hands) -> None:
    job = hands.finished()
    hands.value("select fenceline.delete_job(fenceline.parse_public_id(%s))", job)
    for verb in ("steps", "phases"):
        assert f"job {job} does not exist" in fenceline("jobs", verb, job).error


def test_children_and_locks(fenceline: Program, hands: Hands) -> None:
    parent = hands.enqueue("whole", resource_lock="table")
    held = hands.claim()
    hands.value("select fenceline.add_children(%s, %s, 'part', array['{}'::json])", held.job_id, held.attempt_id)
    shown = fenceline("jobs", "locks", parent).out.splitlines()
    assert shown[0].split() == ["WHAT", "NAME", "TENANT", "WHO", "FOR", "HOLDER"]
    assert shown[1].split()[:5] == ["resource_lock", "table", "default", parent, "holds"]
    assert fenceline("locks").out.splitlines()[1].split()[3] == parent
    hands.finish(held)
    (child,) = fenceline("jobs", "children", parent, "--json").json["items"]
    assert (child["kind"], child["parent"]) == ("part", parent)
    assert child["id"] in fenceline("jobs", "list", "--parent", parent).out
    assert fenceline("locks").err == "No locks.\n"
    assert fenceline("locks", "--json").json == {"items": []}
