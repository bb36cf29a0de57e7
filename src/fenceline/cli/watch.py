"""`fenceline jobs watch`: one job, live, with its phases, its progress and its log."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from fenceline.cli.explain import explanation_lines
from fenceline.cli.job_text import error_line, log_text, phase_duration, phase_text, read_log
from fenceline.cli.options import with_queue
from fenceline.cli.output import console, echo, status_text, text
from fenceline.cli.queue import Queue, QueueJob
from fenceline.model.visible import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fenceline.model.explanation import Explanation
    from fenceline.model.job import JobRecord, LogLine, PhaseRecord

LOOK_SECONDS = 0.4
LINES = 12  # of the log, shown on a terminal
BAR = 24


@click.command()
@click.argument("job_id", metavar="ID")
@with_queue
async def watch(queue: Queue, job_id: str) -> None:
    """Watch the job ID until it ends: its phases, its progress and its log.

    Exits 0 if it succeeds, 1 if it does not. Without a terminal, prints a line for every change.
    """
    job = await (_draw if console().is_terminal else _print_events)(queue.job(job_id))
    echo(f"{job.id} {job.status}{': ' + error_line(job.error) if job.error else ''}", err=True)
    if not job.status.is_success:
        click.get_current_context().exit(1)


async def _draw(named: QueueJob) -> "JobRecord":
    from rich.console import Group
    from rich.live import Live

    lines: deque[LogLine] = deque(maxlen=LINES)
    with Live(console=console(), auto_refresh=False, transient=False) as live:
        while True:
            # In this order: an attempt's log is stored before its end, so once the job has ended, its log is complete.
            job = await named.get()
            async for line in read_log(named, lines[-1] if lines else None):
                lines.append(line)
            explanation = None if job.status.is_final else await named.explain()
            live.update(Group(*_parts(job, await named.phases(), explanation, lines)), refresh=True)
            if job.status.is_final:
                return job
            await asyncio.sleep(LOOK_SECONDS)


async def _print_events(named: QueueJob) -> "JobRecord":
    printed: tuple[str, str | None] | None = None
    last: LogLine | None = None
    while True:
        job = await named.get()
        if printed != (job.status, job.phase):
            printed = (job.status, job.phase)
            echo(f"{job.status}{'' if job.phase is None else f' {job.phase}'}")
        async for line in read_log(named, last):
            echo(_line(line))
            last = line
        if job.status.is_final:
            return job
        await asyncio.sleep(LOOK_SECONDS)


def _parts(
    job: "JobRecord", phases: "list[PhaseRecord]", explanation: "Explanation | None", lines: "deque[LogLine]"
) -> "Iterator[RenderableType]":
    from rich.text import Text

    yield Text.from_markup(f"[bold]{job.id}[/]  {text(job.kind)}  {status_text(job.status, job.waiting_for)}")
    if explanation is not None:
        yield from map(Text.from_markup, explanation_lines(explanation))
    for phase in phases:
        mark = "[green]✓[/]" if phase.ended_at is not None else "[bright_blue]▶[/]"
        progress, took = text(phase_text(phase, bar=BAR)), phase_duration(phase)
        yield Text.from_markup(f"  {mark} {text(phase.phase)}  {progress}  [dim]{took}[/]")
    for line in lines:
        yield Text(visible(_line(line)), style="dim")


def _line(line: "LogLine") -> str:
    fields = "".join(f" {name}={value}" for name, value in (line.fields or {}).items())
    return log_text(line) + fields
