"""`fenceline jobs cancel|retry|approve|reject|reprioritise`: one job, several, or all that match filters."""

from dataclasses import replace

import click

from fenceline.cli.bulk import Choice, Verb, bulk_options, run_bulk
from fenceline.cli.options import with_queue
from fenceline.cli.queue import Queue
from fenceline.model.status import FINAL, Status

UNCLAIMED = (Status.AWAITING_APPROVAL, Status.WAITING, Status.SCHEDULED, Status.QUEUED)

reason_option = click.option("--reason", help="Why; kept in the audit.")


@click.command()
@bulk_options
@reason_option
@click.option("--force", is_flag=True, help="Take a running job away at once, without grace for its handler.")
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

    verb = Verb("retry", tuple(FINAL), act, usual=(Status.FAILED,))
    await run_bulk(queue, verb, chosen)


@click.command()
@bulk_options
@reason_option
@with_queue
async def approve(queue: Queue, chosen: Choice, reason: str | None) -> None:
    """Let jobs go on that await approval: those named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        return f"approved, now {await queue.approve(job_id, reason=reason)}"

    verb = Verb("approve", (Status.AWAITING_APPROVAL,), act)
    await run_bulk(queue, verb, chosen)


@click.command()
@bulk_options
@reason_option
@with_queue
async def reject(queue: Queue, chosen: Choice, reason: str | None) -> None:
    """End jobs that await approval: those named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        return f"rejected, now {await queue.reject(job_id, reason=reason)}"

    verb = Verb("reject", (Status.AWAITING_APPROVAL,), act)
    await run_bulk(queue, verb, chosen)


@click.command()
@bulk_options
@click.option("--priority", "-p", type=int, help="The new priority; higher is sooner. May also stand behind the IDs.")
@with_queue
async def reprioritise(queue: Queue, chosen: Choice, priority: int | None) -> None:
    """Change the priority of jobs that no worker holds: those named by ID, or all that match filters.

    `jobs reprioritise ID 10` is short for `jobs reprioritise ID --priority 10`.
    """
    *ids, last = chosen.ids or ("",)
    if priority is None and last.isdecimal() and len(last) <= len("32767"):  # no id is as short
        chosen, priority = replace(chosen, ids=tuple(ids)), int(last)
    if priority is None:
        raise click.UsageError("say the new priority: --priority N")

    async def act(job_id: str) -> str:
        await queue.reprioritise(job_id, priority)
        return f"priority {priority}"

    verb = Verb("reprioritise", UNCLAIMED, act)
    await run_bulk(queue, verb, chosen)


VERBS = (cancel, retry, approve, reject, reprioritise)
