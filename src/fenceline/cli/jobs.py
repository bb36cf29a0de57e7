"""`fenceline jobs list|children|show|steps|phases|logs`; the verbs that change jobs are in `job_actions.py`."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fenceline.cli import job_actions
from fenceline.cli.command_group import CommandGroup
from fenceline.cli.explain import explain
from fenceline.cli.filter_options import filter_options
from fenceline.cli.job_text import error_line, phase_duration, phase_text, progress_text, read_log
from fenceline.cli.locks import locks_of_job
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import (
    ago,
    console,
    duration,
    echo,
    print_json,
    print_parts,
    print_table,
    status_text,
    table,
    text,
    to_json,
)
from fenceline.cli.queue import Queue
from fenceline.cli.watch import watch
from fenceline.model.job import JobFilter
from fenceline.model.visible import visible

if TYPE_CHECKING:
    from fenceline.model.job import JobPage, JobRecord, LogLine

PAGE = 1000
FOLLOW_SECONDS = 0.4


@click.group(cls=CommandGroup)
def jobs() -> None:
    """See jobs, and cancel, retry, approve or move them."""


for _verb in (*job_actions.VERBS, explain, locks_of_job, watch):
    jobs.add_command(_verb)


@jobs.command("list")
@filter_options
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="Most jobs to show.")
@click.option("--cursor", help="Continue from the `next_cursor` of an earlier list.")
@json_option
@with_queue
async def list_jobs(queue: Queue, which: JobFilter, limit: int, cursor: str | None, as_json: bool) -> None:
    """List jobs, newest first."""
    await _list(queue, which, limit=limit, cursor=cursor, as_json=as_json)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="Most jobs to show.")
@click.option("--cursor", help="Continue from the `next_cursor` of an earlier list.")
@json_option
@with_queue
async def children(queue: Queue, job_id: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """List the jobs that the handler of the job ID enqueued, newest first."""
    await queue.job(job_id).get()
    await _list(queue, JobFilter(parent=job_id), limit=limit, cursor=cursor, as_json=as_json)


async def _list(queue: Queue, which: JobFilter, *, limit: int, cursor: str | None, as_json: bool) -> None:
    page = await collect(queue, which, limit=limit, cursor=cursor, fields=("args", "result") if as_json else ())
    if as_json:
        print_json({"items": page.items, "next_cursor": page.next_cursor})
        return
    rows = table("ID", "KIND", "STATUS", "LANE", "PRIORITY", "ATTEMPT", "CREATED", "TOOK", "", right=("PRIORITY",))
    for job in page.items:
        rows.add_row(
            job.id,
            text(job.kind),
            status_text(job.status, job.waiting_for),
            text(job.lane),
            str(job.priority),
            f"{job.attempt}/{job.max_attempts}",
            ago(job.created_at),
            _took(job),
            text(remark(job)),
        )
    if page.items:
        print_table(rows, first_to_go=("PRIORITY", "ATTEMPT", "TOOK", "", "LANE", "CREATED"), remark="")
    if page.next_cursor is not None:
        click.echo(f"There are more: --limit {limit * 2}, or --cursor {page.next_cursor}", err=True)
    elif not page.items:
        click.echo("No such jobs.", err=True)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option(
    "--snapshot", "only_snapshot", is_flag=True, help="Print only the snapshot it was enqueued with, as JSON."
)
@json_option
@with_queue
async def show(queue: Queue, job_id: str, only_snapshot: bool, as_json: bool) -> None:
    """Show everything about the job ID, with the timeline of its attempts."""
    named = queue.job(job_id)
    if only_snapshot:
        print_json(await named.snapshot())
        return
    from dataclasses import asdict

    from fenceline.cli.timeline import draw_job

    job, attempts, events = await named.get(), await named.attempts(), await named.events()
    explanation = None if job.status.is_final else await named.explain()
    if as_json:
        print_json({**asdict(job), "explain": explanation, "attempts": attempts, "events": events})
    else:
        print_parts(*draw_job(job, attempts, events, explanation, width=min(console().width, 120)))


@jobs.command()
@click.argument("job_id", metavar="ID")
@json_option
@with_queue
async def steps(queue: Queue, job_id: str, as_json: bool) -> None:
    """List the steps of the job ID in order, with their results."""
    found = await queue.job(job_id).steps()
    if as_json:
        print_json({"items": found})
        return
    rows = table("STEP", "STATUS", "TOOK", "RESULT", may_wrap=("RESULT",))
    for step in found:
        result = step.result if step.error is None else step.error
        shown = "" if result is None else text(json.dumps(result, ensure_ascii=False))
        rows.add_row(text(step.name), text(step.status), duration(step.ran_seconds), shown)
    print_table(rows, first_to_go=("TOOK",))


@jobs.command()
@click.argument("job_id", metavar="ID")
@json_option
@with_queue
async def phases(queue: Queue, job_id: str, as_json: bool) -> None:
    """List the phases of the job ID with how many items each has; with --json, all items by name."""
    found = await queue.job(job_id).phases()
    if as_json:
        print_json({"items": found})
        return
    rows = table("PHASE", "ATTEMPT", "TOOK", "PROGRESS", may_wrap=("PROGRESS",))
    for phase in found:
        rows.add_row(text(phase.phase), text(phase.attempt), phase_duration(phase), text(phase_text(phase)))
    print_table(rows, first_to_go=("TOOK",))


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines until the job ends.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Start with the last N lines.")
@json_option
@with_queue
async def logs(queue: Queue, job_id: str, follow: bool, tail: int | None, as_json: bool) -> None:
    """Print what the job ID logged; with --json one object per line."""
    last: LogLine | None = None
    named = queue.job(job_id)
    job = await named.get()
    if tail is not None:
        lines = [line async for line in read_log(named)]
        last = lines[-1] if lines else None
        for line in lines[max(len(lines) - tail, 0) :]:
            _print_line(line, as_json=as_json)
    while True:
        async for line in read_log(named, last):
            _print_line(line, as_json=as_json)
            last = line
        # In this order: an attempt's log is stored before its end, so once the job has ended, its log is complete.
        if not follow or job.status.is_final:
            break
        await asyncio.sleep(FOLLOW_SECONDS)
        job = await named.get()
    if follow:
        echo(f"{job.id} {job.status}" + (f": {remark(job)}" if job.error else ""), err=True)


async def collect(
    queue: Queue, which: JobFilter, *, limit: int, cursor: str | None = None, fields: Sequence[str] = ()
) -> "JobPage":
    """Up to `limit` jobs, over as many pages as it takes: a page may be short, or even empty, before the last one."""
    from fenceline.model.job import JobPage

    items: list[JobRecord] = []
    while True:
        page = await queue.list_jobs(which, limit=min(limit - len(items), PAGE), cursor=cursor, fields=fields)
        items += page.items
        cursor = page.next_cursor
        if cursor is None or len(items) >= limit:
            return JobPage(items=items, next_cursor=cursor)


def remark(job: "JobRecord") -> str:
    """The most telling thing about a job, in a few words."""
    if job.error:
        return error_line(job.error)[:200]
    if job.cancel_requested_at is not None:
        return "asked to stop"
    if job.status == "scheduled":
        return ago(job.run_at)
    if not job.status.is_final:
        return progress_text(job.phase, job.progress)
    return ""


def _print_line(line: "LogLine", *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(line, indent=None))
        return
    colours = {"debug": "bright_black", "warning": "yellow", "error": "red", "critical": "red"}
    extra = "".join(f" {name}={_short(value)}" for name, value in (line.fields or {}).items())
    moment = line.at.astimezone().strftime("%H:%M:%S.%f")[:-3]
    level = click.style(f"{visible(line.level):<7}", fg=colours.get(line.level, "blue"))
    # Indented, so that a message of several lines cannot pass for several messages.
    message = visible(line.message).replace("\n", "\n    ")
    click.echo(f"{click.style(moment, dim=True)} {level} {message}{click.style(visible(extra), dim=True)}")


def _short(value: object) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value, ensure_ascii=False)


def _took(job: "JobRecord") -> str:
    if job.started_at is None or job.finished_at is None:
        return ""
    return duration((job.finished_at - job.started_at).total_seconds())
