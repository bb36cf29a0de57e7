"""The verbs of `fenceline jobs` that change jobs: one job, several, or all that match filters."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import click

from fenceline.cli.bulk import Choice, Verb, bulk_options, run_bulk
from fenceline.cli.options import with_queue
from fenceline.cli.output import echo
from fenceline.cli.queue import Queue
from fenceline.model.public_id import parse_id
from fenceline.model.status import FINAL, Status

UNCLAIMED = (Status.AWAITING_APPROVAL, Status.WAITING, Status.SCHEDULED, Status.QUEUED)


class Decide(Protocol):
    async def __call__(self, job_id: str, *, reason: str | None) -> Status: ...


reason_option = click.option("--reason", help="Reason, recorded in the audit log.")


@click.command()
@bulk_options
@reason_option
@click.option("--force", is_flag=True, help="Take a running job from its worker at once, without a grace period.")
@with_queue
async def cancel(queue: Queue, chosen: Choice, reason: str | None, force: bool) -> None:
    """Cancel jobs: those named by ID, or all unfinished ones that match filters.

    A job that runs is asked to stop, and has a grace period to do so.
    """

    async def act(job_id: str) -> str:
        status = await queue.cancel(job_id, reason=reason, force=force)
        return "cancelled" if status is Status.CANCELLED else "asked to stop"

    verb = Verb("cancel", tuple(status for status in Status if status not in FINAL), act)
    await run_bulk(queue, verb, chosen)


@click.command()
@bulk_options
@with_queue
async def retry(queue: Queue, chosen: Choice) -> None:
    """Run finished jobs again, as new jobs: those named by ID, or all that match filters.

    With filters but no --status only failed jobs are meant.
    """

    async def act(job_id: str) -> str:
        return f"retried as {await queue.retry(job_id)}"

    verb = Verb("retry", tuple(FINAL), act, usual=(Status.FAILED,), in_order=True)
    await run_bulk(queue, verb, chosen)


def _decision(verb: str, done: str, meaning: str, decide: Callable[[Queue], Decide]) -> click.Command:
    @click.command(verb, help=f"{meaning} that await approval: those named by ID, or all that match filters.")
    @bulk_options
    @reason_option
    @with_queue
    async def command(queue: Queue, chosen: Choice, reason: str | None) -> None:
        async def act(job_id: str) -> str:
            return f"{done}, now {await decide(queue)(job_id, reason=reason)}"

        await run_bulk(queue, Verb(verb, (Status.AWAITING_APPROVAL,), act), chosen)

    return command


approve = _decision("approve", "approved", "Let jobs go on", lambda queue: queue.approve)
reject = _decision("reject", "rejected", "End jobs", lambda queue: queue.reject)


@click.command()
@bulk_options
@click.option("--priority", "-p", type=int, help="New priority; higher is sooner. May also follow the ID.")
@with_queue
async def reprioritise(queue: Queue, chosen: Choice, priority: int | None) -> None:
    """Change the priority of jobs that no worker holds: those named by ID, or all that match filters.

    `jobs reprioritise ID 10` is short for `jobs reprioritise ID --priority 10`.
    """
    *ids, last = chosen.ids or ("",)
    if priority is None and last.isdecimal() and len(last) <= len("32767"):  # no id is as short
        chosen, priority = replace(chosen, ids=tuple(ids)), int(last)
    if priority is None:
        raise click.UsageError("the new priority is missing: add --priority N")

    async def act(job_id: str) -> str:
        await queue.reprioritise(job_id, priority)
        return f"priority {priority}"

    verb = Verb("reprioritise", UNCLAIMED, act)
    await run_bulk(queue, verb, chosen)


@click.command("run-now")
@bulk_options
@reason_option
@with_queue
async def run_now(queue: Queue, chosen: Choice, reason: str | None) -> None:
    """Let jobs go on at once that are scheduled, or wait for their retry: named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        await queue.run_now(job_id, reason=reason)
        return "goes on now"

    await run_bulk(queue, Verb("run now", (Status.SCHEDULED,), act), chosen)


@click.command()
@bulk_options
@with_queue
async def delete(queue: Queue, chosen: Choice) -> None:
    """Forget finished jobs and all that is kept of them: those named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        await queue.delete(job_id)
        return "deleted"

    await run_bulk(queue, Verb("delete", tuple(FINAL), act), chosen)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--lane", required=True, help="Lane to move to.")
@reason_option
@with_queue
async def move(queue: Queue, ids: tuple[str, ...], lane: str, reason: str | None) -> None:
    """Move jobs that no worker holds to another lane."""
    for job_id in ids:
        parse_id(job_id)  # a mistyped one stops us before anything is done
    for job_id in ids:
        await queue.move(job_id, lane, reason=reason)
        echo(f"{job_id} moved to {lane}")


@click.command("signal")
@click.argument("job_id", metavar="ID")
@click.argument("name")
@click.option("--payload", help="JSON payload of the signal.")
@with_queue
async def signal_job(queue: Queue, job_id: str, name: str, payload: str | None) -> None:
    """Send a signal to a job whose handler waits for it, or will.

    `jobs signal ID agent-returned --payload '{"ok": true}'`
    """
    parse_id(job_id)
    try:
        value = None if payload is None else json.loads(payload)
    except ValueError as error:
        raise click.BadParameter(f"this is not JSON: {error}", param_hint="--payload") from error
    status = await queue.signal(job_id, name, value)
    echo(f"{job_id} signalled, now {status}")


VERBS = (cancel, retry, approve, reject, reprioritise, run_now, signal_job, move, delete)
