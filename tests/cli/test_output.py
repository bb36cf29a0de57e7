"""Words and bars for people."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from fenceline.cli import output
from fenceline.cli.job_text import draw_bar, progress_text
from fenceline.cli.output import ago, duration, print_table, table, text
from fenceline.cli.timeline import draw_timeline
from fenceline.model.job import JobRecord
from fenceline.model.records import AttemptRecord
from fenceline.model.status import Status


@pytest.mark.parametrize(
    "seconds, words",
    [
        (None, ""),
        (0, "0 ms"),
        (0.0123, "12 ms"),
        (0.99996, "1.0 s"),
        (3.44, "3.4 s"),
        (59.96, "1 m 00 s"),
        (320, "5 m 20 s"),
        (7505, "2 h 05 m"),
        (276_000, "3 d 04 h"),
        (-5, "-5.0 s"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_times_before_and_after() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert ago(now - timedelta(seconds=2), now) == "2.0 s ago"
    assert ago(now + timedelta(minutes=2), now) == "in 2 m 00 s"


@pytest.mark.parametrize(
    "share, bar", [(0, "░░░░"), (0.5, "██░░"), (1, "████"), (7, "████"), (-1, "░░░░"), (0.625, "██▌░")]
)
def test_bars(share: float, bar: str) -> None:
    assert draw_bar(share, 4) == bar


@pytest.mark.parametrize(
    "progress, words",
    [
        (None, "load"),
        ({"done": 3, "total": 9, "message": "m"}, "load █▍░░ 3/9 m"),
        ({"done": 3}, "load 3"),
        ({"done": "x", "total": 0}, "load x/0"),
        ({"other": 1}, "load"),
    ],
)
def test_progress(progress: dict[str, object] | None, words: str) -> None:
    assert progress_text("load", progress, bar=4) == words


def test_cells_are_not_markup() -> None:
    rows = table("A")
    rows.add_row(text("[red]x[/red]"))
    assert text("[red]") == r"\[red]"
    assert text(None) == ""


def test_the_timeline_is_to_scale() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)

    def attempt(number: int, claimed: float, started: float, ended: float | None) -> AttemptRecord:
        return AttemptRecord(
            attempt_id="a", token=number, number=number, worker="w", claimed_at=start + timedelta(seconds=claimed),
            started_at=start + timedelta(seconds=started),
            ended_at=None if ended is None else start + timedelta(seconds=ended),
            outcome=None if ended is None else "failed", final=False, error=None, actor=None, metadata=None,
        )  # fmt: skip

    job = JobRecord(
        id="x", kind="k", status=Status.RUNNING, waiting_for=None, lane="l", priority=0, tenant="t", args={},
        labels=None, attempt=2, max_attempts=3, created_at=start, created_by=None, run_at=None, claimed_at=None,
        started_at=None, finished_at=None, worker=None, phase=None, progress=None, result=None, error=None, errors=None,
        cancel_requested_at=None, retry_of=None, parent=None, delivery="postgres", backend_job_id=None,
    )  # fmt: skip
    drawn = draw_timeline(
        job, [attempt(1, 5, 10, 20), attempt(2, 30, 30, None)], width=80, now=start + timedelta(seconds=40)
    )
    bars = [str(cell) for cell in drawn.columns[2].cells][1:]
    assert bars == ["  ░░░█████", " " * 14 + "█████▶"]


def test_a_narrow_terminal_loses_columns_and_cuts_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(output, "console", lambda: Console(file=screen, width=80, force_terminal=True))
    rows = table("ID", "KIND", "LANE", "STATUS", "ATTEMPT", "RESULT", may_wrap=("RESULT",))
    result = '{"path": "s3://bucket/report.csv"}'
    rows.add_row("0AJA-9T14-W000-5YE", "compact", "interactive", "awaiting_approval", "2/3", result)
    print_table(rows, first_to_go=("ATTEMPT", "LANE"))
    assert "awaiting_approval  " in screen.getvalue()
    assert "2/3" not in screen.getvalue()
