"""One verb for several jobs: count them, ask, show progress, and report what was not done."""

import asyncio
import functools
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import click

from fenceline.cli.filter_options import filter_options
from fenceline.cli.options import json_option, with_queue, yes_option
from fenceline.cli.output import console, echo, print_json
from fenceline.cli.queue import Queue
from fenceline.errors import RefusedError
from fenceline.model.counted import counted
from fenceline.model.job import JobFilter
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.status import Status

F = TypeVar("F", bound=Callable[..., Any])

PAGE = 1000
AT_ONCE = 4  # as many as the client has connections
LISTED = 20  # up to this many jobs are named one by one; more are only counted


@dataclass(frozen=True, slots=True)
class Verb:
    """`act` changes one job and returns what became of it; it applies to jobs with one of `statuses`."""

    name: str
    statuses: Collection[Status]
    act: Callable[[str], Awaitable[str]]
    default_statuses: Collection[Status] = ()  # that filters without --status select, if not all of `statuses`
    in_order: bool = False  # one at a time, oldest first: a job is created after those it waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which jobs, and how: the options that every bulk command has."""

    ids: tuple[str, ...]
    which: JobFilter
    everything: bool
    dry_run: bool
    yes: bool
    as_json: bool


@dataclass(slots=True)
class Report:
    done: dict[str, str] = field(default_factory=dict)
    not_done: dict[str, str] = field(default_factory=dict)


def bulk_options(function: F) -> F:
    """Add IDs, filters, `--all`, `--dry-run`, `--yes` and `--json`; the function gets them as one `chosen: Choice`."""

    @functools.wraps(function)
    def with_choice(*args: Any, **kwargs: Any) -> Any:
        chosen = Choice(**{field.name: kwargs.pop(field.name) for field in fields(Choice)})
        return function(*args, chosen=chosen, **kwargs)

    for option in (
        json_option,
        yes_option,
        click.option("--dry-run", is_flag=True, help="Only count the jobs; change nothing."),
        click.option("--all", "everything", is_flag=True, help="All jobs the command applies to, without a filter."),
        filter_options,
        click.argument("ids", metavar="[ID]...", nargs=-1),
    ):
        with_choice = option(with_choice)
    return with_choice  # type: ignore[return-value]  # the same function to click


def bulk_command(
    *options: Callable[[Any], Any],
    statuses: Collection[Status],
    default_statuses: Collection[Status] = (),
    in_order: bool = False,
) -> Callable[[Callable[..., Awaitable[str]]], click.Command]:
    """Make a command that does to many jobs what the function does to one.

    The function gets a job and the values of `options`, and returns what became of the job. The rest is as in `Verb`.
    """

    def decorate(function: Callable[..., Awaitable[str]]) -> click.Command:
        name = function.__name__.replace("_", " ")

        @functools.wraps(function)
        async def run(queue: Queue, chosen: Choice, **given: Any) -> None:
            verb = Verb(name, statuses, lambda job_id: function(queue.job(job_id), **given), default_statuses, in_order)
            await run_bulk(queue, verb, chosen)

        command = with_queue(run)
        for option in reversed(options):
            command = option(command)
        return click.command(name.replace(" ", "-"))(bulk_options(command))

    return decorate


async def run_bulk(queue: Queue, verb: Verb, chosen: Choice) -> None:
    """The whole of a bulk command. Exits 1 when something was not done."""
    ids = chosen.ids
    if bool(ids) + bool(chosen.which) + chosen.everything != 1:
        raise click.UsageError(
            f"which jobs to {verb.name}? Give IDs, or filters such as --kind, or --all" + (", not both" if ids else "")
        )
    if ids:
        found = list(dict.fromkeys(format_id(parse_id(job_id)) for job_id in ids))  # one typo stops it all
        counts = ""
    else:
        found, counts = await _find(queue, verb, chosen.which)
    if chosen.dry_run or not found:
        _say_count(verb, len(found), counts, as_json=chosen.as_json)
        return
    if (len(found) > 1 or not ids) and not chosen.yes:
        ask(f"{verb.name} {counted(len(found), 'job')}" + (f" ({counts})" if counts else ""))
    report = await _do(verb, found)
    _say(verb, report, as_json=chosen.as_json)
    if report.not_done:
        click.get_current_context().exit(1)


async def _find(queue: Queue, verb: Verb, which: JobFilter) -> tuple[list[str], str]:
    """The ids of the jobs that match and that the verb applies to, and a summary of their statuses and kinds."""
    misfits = [status for status in which.statuses or () if Status(status) not in verb.statuses]
    if misfits:
        raise click.ClickException(
            f"jobs that are {', '.join(misfits)} cannot be {_past(verb.name)}: "
            f"use --status {', '.join(sorted(verb.statuses))}"
        )
    which = replace(which, statuses=which.statuses or tuple(map(str, verb.default_statuses or verb.statuses)))
    found: list[str] = []
    kinds: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    cursor: str | None = None
    with console(stderr=True).status("counting …") as status:
        while True:
            page = await queue.list_jobs(which, limit=PAGE, cursor=cursor)
            found += [job.id for job in page.items]
            kinds.update(job.kind for job in page.items)
            statuses.update(job.status for job in page.items)
            status.update(f"counting … {len(found)}")
            cursor = page.next_cursor
            if cursor is None:
                break
    counts = (", ".join(f"{count} {name}" for name, count in counter.most_common(5)) for counter in (statuses, kinds))
    return found, "; ".join(counts) if found else ""


def ask(what: str) -> None:
    """Return after a yes. Raises ClickException after a no, and where there is no terminal to ask on."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.ClickException(f"this would {what}: add --yes to do it without a question")
    # asyncio's own handler of Ctrl-C only cancels the task, which a question that blocks does not notice.
    asyncio_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if not click.confirm(f"{what[0].upper()}{what[1:]}?", err=True):
            raise click.ClickException("nothing was changed")
    except click.Abort:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, asyncio_handler)


async def _do(verb: Verb, ids: list[str]) -> Report:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    report = Report()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
        disable=len(ids) == 1 or not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task(verb.name, total=len(ids))
        left = sorted(ids, key=parse_id) if verb.in_order else ids
        while left:
            before = len(report.done)
            await _go_through(verb, left, report, lambda: progress.advance(task))
            # Some were refused because of a job that came later: try those again for as long as that helps.
            left = list(report.not_done) if verb.in_order and len(report.done) > before else []
    return report


async def _go_through(verb: Verb, ids: list[str], report: Report, advance: Callable[[], None]) -> None:
    waiting = iter(ids)

    async def work() -> None:
        for job_id in waiting:
            try:
                report.done[job_id] = await verb.act(job_id)
            except RefusedError as error:  # any other error would hit the remaining jobs too
                if len(ids) == 1 and not report.not_done and not report.done:
                    raise
                report.not_done[job_id] = str(error)
            else:
                report.not_done.pop(job_id, None)
            advance()

    tasks = [asyncio.create_task(work()) for _ in range(1 if verb.in_order else min(AT_ONCE, len(ids)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for running in tasks:
            running.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say_count(verb: Verb, count: int, counts: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"count": count})
    else:
        echo(f"{counted(count, 'job')} to {verb.name}" + (f": {counts}" if counts else ""))


def _say(verb: Verb, report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "done": [{"id": job_id, "outcome": outcome} for job_id, outcome in report.done.items()],
                "not_done": [{"id": job_id, "error": error} for job_id, error in report.not_done.items()],
            }
        )
        return
    if len(report.done) <= LISTED:
        for job_id, outcome in report.done.items():
            echo(f"{job_id} {outcome}")
    else:
        click.echo(f"{counted(len(report.done), 'job')} {_past(verb.name)}")
    for error, count in Counter(report.not_done.values()).most_common(LISTED):
        echo(f"not done: {error}" + (f" ({count} times)" if count > 1 else ""), err=True)
    if len(report.not_done) > LISTED:
        click.echo(f"{counted(len(report.not_done), 'job')} not {_past(verb.name)}", err=True)


def _past(verb: str) -> str:
    return {"cancel": "cancelled", "retry": "retried"}.get(verb, verb + ("d" if verb.endswith("e") else "ed"))
