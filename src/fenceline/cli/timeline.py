"""`jobs show`: everything about a job, with its attempts drawn to scale."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fenceline.cli.explain import explanation_lines
from fenceline.cli.job_text import error_line, progress_text
from fenceline.cli.output import STATUS_STYLES, ago, duration, status_text, text
from fenceline.model.explanation import Explanation
from fenceline.model.job import JobRecord
from fenceline.model.records import AttemptRecord, JobEvent
from fenceline.model.visible import visible

MIN_BAR, MAX_BAR = 20, 60
MAX_SHOWN = 500  # characters of one value
DRAWN = ("attempt.", "job.enqueue", "job.end")


def draw_job(
    job: JobRecord,
    attempts: list[AttemptRecord],
    events: list[JobEvent],
    explanation: Explanation | None = None,
    *,
    width: int,
) -> Iterator[RenderableType]:
    now = datetime.now(UTC)
    yield Text.assemble(
        (job.id, "bold"), "  ", visible(job.kind), "  ", Text.from_markup(status_text(job.status, job.waiting_for))
    )
    if explanation is not None:
        yield from map(Text.from_markup, explanation_lines(explanation))
        yield ""
    yield _facts(job, now)
    yield from _tracebacks(job, attempts)
    if attempts:
        yield ""
        yield Text("attempts", style="bold")
        yield draw_timeline(job, attempts, width=width, now=now)
    # The rest, which the timeline does not show, is what people did.
    others = [event for event in events if not event.event.startswith(DRAWN)]
    if others:
        yield ""
        yield Text("events", style="bold")
        yield _events(others)


def _tracebacks(job: JobRecord, attempts: list[AttemptRecord]) -> Iterator[RenderableType]:
    """The tracebacks of all attempts, or the job's own if it has ended without any."""
    found = [
        (f" of attempt {a.number}", (a.error or {}).get("traceback")) for a in attempts if a.attempt_id is not None
    ]
    for whose, trace in found or [("", (job.error or {}).get("traceback"))]:
        if trace:
            yield ""
            yield Text(f"traceback{whose}", style="bold")
            yield Text(visible(str(trace)).rstrip(), style="dim")


def draw_timeline(job: JobRecord, attempts: list[AttemptRecord], *, width: int, now: datetime) -> Table:
    """A bar per attempt, from the job's creation to its end (or now): `░` claimed, `█` running, `▶` still running."""
    first = job.created_at
    last = max([attempt.ended_at or now for attempt in attempts] + [job.finished_at or now])
    cells = max(MIN_BAR, min(MAX_BAR, width - 60))
    grid = _grid()
    for column in ("number", "outcome", "bar", "took", "worker", "why"):
        grid.add_column(column, no_wrap=column != "why", overflow="fold" if column == "why" else "ellipsis")
    span = f"{_clock(first)} {'─' * max(cells - 18, 1)} {_clock(last)}"
    grid.add_row("", "", f"[dim]{span}[/]", "", "", "")
    for attempt in attempts:
        outcome = attempt.outcome or ("running" if job.status == "running" else "claimed")
        style = STATUS_STYLES.get(outcome, "default")
        grid.add_row(
            "" if attempt.number is None else f"#{attempt.number}",
            f"[{style}]{text(outcome)}[/]",
            Text(_bar(attempt, first, last, cells), style=style),
            _took(attempt, now),
            text(attempt.worker or (attempt.actor and f"by {attempt.actor}")),
            text(_why(attempt)),
        )
    return grid


def _bar(attempt: AttemptRecord, first: datetime, last: datetime, cells: int) -> str:
    if attempt.claimed_at is None:  # ended unclaimed: a moment, not a span
        return " " * _cell(attempt.ended_at or last, first, last, cells - 1) + "◆"
    claimed = _cell(attempt.claimed_at, first, last, cells - 1)
    started = _cell(attempt.started_at or attempt.claimed_at, first, last, cells - 1)
    ended = max(_cell(attempt.ended_at or last, first, last, cells), started + 1)
    bar = " " * claimed + "░" * (started - claimed) + "█" * (ended - started)
    return bar if attempt.ended_at else bar[:-1] + "▶"


def _cell(moment: datetime, first: datetime, last: datetime, cells: int) -> int:
    whole = (last - first).total_seconds()
    share = (moment - first).total_seconds() / whole if whole > 0 else 0.0
    return round(max(0.0, min(1.0, share)) * cells)


def _took(attempt: AttemptRecord, now: datetime) -> str:
    since = attempt.started_at or attempt.claimed_at
    return "" if since is None else duration(((attempt.ended_at or now) - since).total_seconds())


def _why(attempt: AttemptRecord) -> str:
    error, metadata = attempt.error or {}, attempt.metadata or {}
    return error_line(error) or str(metadata.get("reason") or "").partition("\n")[0]


def _facts(job: JobRecord, now: datetime) -> Table:
    grid = _grid()
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    by = f" by {job.created_by}" if job.created_by else ""
    facts: list[tuple[str, Any]] = [
        ("lane", f"{job.lane}, priority {job.priority}"),
        ("tenant", job.tenant),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("created", f"{_when(job.created_at, now)}{by}"),
        ("run at", _when(job.run_at, now)),
        ("started", _when(job.started_at, now)),
        ("finished", _when(job.finished_at, now)),
        ("asked to stop", _when(job.cancel_requested_at, now)),
        ("worker", job.worker),
        ("runner", job.runner if isinstance(job.runner, str) else _json(job.runner)),
        ("progress", progress_text(job.phase, job.progress, bar=20)),
        ("labels", ", ".join(f"{name}:{value}" for name, value in (job.labels or {}).items())),
        ("retry of", job.retry_of),
        ("parent", job.parent),
        ("after", ", ".join(job.after or ())),
        ("group", job.group),
        ("key", job.key and f"{job.key}, {job.key_limit} at a time"),
        ("resource lock", job.resource_lock),
        ("dedupe key", job.dedupe_key),
        ("expires at", _when(job.expires_at, now)),
        ("timeout", job.timeout and f"{job.timeout:g} s"),
        ("retry policy", _json(job.retry)),
        ("identity", job.identity),
        ("snapshot hash", job.snapshot_hash),
        ("requires hash", job.requires_hash),
        ("delivery", None if job.delivery == "postgres" else f"{job.delivery} {job.backend_job_id or ''}"),
        ("args", _json(job.args)),
        ("result", _json(job.result)),
        ("error", _error(job.error)),
        ("errors", _json(job.errors)),
    ]
    for name, value in facts:
        if value:
            grid.add_row(name, text(value))
    return grid


def _error(error: dict[str, Any] | None) -> str:
    """Its code, type and message, then the rest as JSON, except for the traceback, which is shown elsewhere."""
    if error is None:
        return ""
    rest = {name: value for name, value in error.items() if name not in ("code", "message", "type", "traceback")}
    line = _cut(": ".join(str(error[name]) for name in ("code", "type", "message") if error.get(name)))
    return line + (f" {_json(rest)}" if rest else "")


def _events(events: list[JobEvent]) -> Table:
    grid = _grid()
    for event in events:
        grid.add_row(_clock(event.at), text(event.actor), text(event.event), text(event.reason))
    return grid


def _grid() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)


def _json(value: Any) -> str:
    return "" if value is None else _cut(json.dumps(value, ensure_ascii=False))


def _cut(value: str) -> str:
    """Shortened, if it would fill the screen."""
    if len(value) <= MAX_SHOWN:
        return value
    return f"{value[:MAX_SHOWN]}… ({len(value):,} characters; all of it with --json)"


def _when(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({ago(moment, now)})"


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M:%S}"
