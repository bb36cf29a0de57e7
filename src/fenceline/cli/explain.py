"""`fenceline jobs explain`: why a job is where it is, and what to type about it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import ago, console, duration, print_json, status_text, text
from fenceline.cli.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fenceline.model.explanation import Explanation, Reason


@click.command()
@click.argument("job_id", metavar="ID")
@json_option
@with_queue
async def explain(queue: Queue, job_id: str, as_json: bool) -> None:
    """Explain why the job ID is where it is: what it waits for, since when, and what would change that."""
    found = await queue.job(job_id).explain()
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(f"[bold]{found.id}[/]  {status_text(found.status) if found.status else ''}", soft_wrap=True)
    for line in explanation_lines(found):
        out.print(line, soft_wrap=True)


def explanation_lines(explanation: "Explanation") -> "Iterator[str]":
    """The reasons with their times and commands, as lines of markup."""
    for reason in (explanation, *explanation.also):
        yield f"{text(reason.text)}{_times(reason)}"
        for command in reason.commands:
            yield f"    [dim]do:[/] {text(command)}"


def _times(reason: "Reason") -> str:
    times = [
        "" if reason.since is None else f"for {duration((datetime.now(UTC) - reason.since).total_seconds())}",
        "" if reason.until is None else f"over {ago(reason.until)}",
    ]
    return f" [dim]({'; '.join(filter(None, times))})[/]" if any(times) else ""
