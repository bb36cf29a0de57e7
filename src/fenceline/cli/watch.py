"""`fenceline jobs watch`: one job live, with its phases, its progress and its log."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from fenceline.cli.error_text import error_line
from fenceline.cli.options import with_queue
from fenceline.cli.output import console, duration, echo, status_text, text
from fenceline.cli.queue import Queue
from fenceline.model.visible import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fenceline.model.explanation import Explanation
    from fenceline.model.job import JobRecord, LogLine, PhaseRecord

LOOK_SECONDS = 0.4
LINES = 12  # of the log, on a terminal
BAR = 24


@click.command()
@click.argument("job_id", metavar="ID")
@with_queue
async def watch(queue: Queue, job_id: str) -> None:
    """Watch the job ID until it ends: its phases, its progress and its log.

    Exits 0 when it succeeded, 1 when it did not. What is no terminal gets a line for whatever changes.
    """
    job = await (_draw(queue, job_id) if console().is_terminal else _print_events(queue, job_id))
    echo(f"{job.id} {job.status}{': ' + error_line(job.error) if job.error else ''}", err=True)
    if not job.status.is_success:
        click.get_current_context().exit(1)


async def _draw(queue: Queue, job_id: str) -> "JobRecord":
    from rich.console import Group
    from rich.live import Live

    lines: deque[LogLine] = deque(maxlen=LINES)
    last: LogLine | None = None
    with Live(console=console(), auto_refresh=False, transient=False) as live:
        while True:
            # Asked in this order: what an attempt logs is stored before its end, so after the end nothing is missed.
            job = await queue.get_job(job_id)
            last = await _read_log(queue, job_id, last, lines)
            told = None if job.status.is_final else await queue.explain(job_id)
            live.update(Group(*_parts(job, await queue.phases(job_id), told, lines)), refresh=True)
            if job.status.is_final:
                return job
            await asyncio.sleep(LOOK_SECONDS)


async def _print_events(queue: Queue, job_id: str) -> "JobRecord":
    said: tuple[str, str | None] | None = None
    last: LogLine | None = None
    while True:
        job = await queue.get_job(job_id)
        lines: deque[LogLine] = deque()
        last = await _read_log(queue, job_id, last, lines)
        if said != (job.status, job.phase):
            said = (job.status, job.phase)
            echo(f"{job.status}{'' if job.phase is None else f' {job.phase}'}")
        for line in lines:
            echo(_line(line))
        if job.status.is_final:
            return job
        await asyncio.sleep(LOOK_SECONDS)


async def _read_log(queue: Queue, job_id: str, last: "LogLine | None", lines: "deque[LogLine]") -> "LogLine | None":
    while more := await queue.logs(job_id, last):
        lines.extend(more)
        last = more[-1]
    return last


def _parts(
    job: "JobRecord", phases: "list[PhaseRecord]", told: "Explanation | None", lines: "deque[LogLine]"
) -> "Iterator[RenderableType]":
    from rich.text import Text

    from fenceline.cli.explain import explanation_lines
    from fenceline.cli.progress_text import count_items, progress_text

    yield Text.from_markup(f"[bold]{job.id}[/]  {text(job.kind)}  {status_text(job.status, job.waiting_for)}")
    if told is not None:
        yield from map(Text.from_markup, explanation_lines(told))
    for phase in phases:
        mark = "[green]✓[/]" if phase.ended_at is not None else "[bright_blue]▶[/]"
        took = "" if phase.ended_at is None else duration((phase.ended_at - phase.started_at).total_seconds())
        said = "  ".join(filter(None, (progress_text(None, phase.progress, bar=BAR), count_items(phase.progress))))
        yield Text.from_markup(f"  {mark} {text(phase.phase or '')}  {text(said)}  [dim]{took}[/]")
    for line in lines:
        yield Text(visible(_line(line)), style="dim")


def _line(line: "LogLine") -> str:
    fields = "".join(f" {name}={value}" for name, value in (line.fields or {}).items())
    return f"{line.at.astimezone():%H:%M:%S} {line.level:<7} {line.message}{fields}"
