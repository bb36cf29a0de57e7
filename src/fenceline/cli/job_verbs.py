"""`fenceline jobs cancel|retry|approve|reject|reprioritise`: one job, several, or all that match filters."""

import click

from fenceline.cli.bulk import Verb, bulk_options, run_bulk
from fenceline.cli.options import with_queue
from fenceline.cli.queue import JobFilter, Queue
from fenceline.model.status import FINAL, Status

UNCLAIMED = (Status.AWAITING_APPROVAL, Status.WAITING, Status.SCHEDULED, Status.QUEUED)

reason_option = click.option("--reason", help="Why; kept in the audit.")


@click.command()
@bulk_options
@reason_option
@click.option("--force", is_flag=True, help="Take a running job away at once, without grace for its handler.")
@with_queue
async def cancel(
    queue: Queue,
    ids: tuple[str, ...],
    which: JobFilter,
    reason: str | None,
    force: bool,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Cancel jobs: those named by ID, or all unfinished ones that match filters.

    A job that runs is asked to stop, and has a grace period to do so.
    """

    async def act(job_id: str) -> str:
        status = await queue.cancel(job_id, reason=reason, force=force)
        return "cancelled" if status is Status.CANCELLED else "asked to stop"

    verb = Verb("cancel", tuple(status for status in Status if status not in FINAL), act)
    await run_bulk(queue, verb, ids, which, everything=everything, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command()
@bulk_options
@with_queue
async def retry(
    queue: Queue,
    ids: tuple[str, ...],
    which: JobFilter,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Run finished jobs again, as new jobs: those named by ID, or all that match filters.

    With filters but no --status only failed jobs are meant.
    """

    async def act(job_id: str) -> str:
        return f"retried as {await queue.retry(job_id)}"

    verb = Verb("retry", tuple(FINAL), act, usual=(Status.FAILED,))
    await run_bulk(queue, verb, ids, which, everything=everything, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command()
@bulk_options
@reason_option
@with_queue
async def approve(
    queue: Queue,
    ids: tuple[str, ...],
    which: JobFilter,
    reason: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Let jobs go on that await approval: those named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        return f"approved, now {await queue.approve(job_id, reason=reason)}"

    verb = Verb("approve", (Status.AWAITING_APPROVAL,), act)
    await run_bulk(queue, verb, ids, which, everything=everything, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command()
@bulk_options
@reason_option
@with_queue
async def reject(
    queue: Queue,
    ids: tuple[str, ...],
    which: JobFilter,
    reason: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """End jobs that await approval: those named by ID, or all that match filters."""

    async def act(job_id: str) -> str:
        return f"rejected, now {await queue.reject(job_id, reason=reason)}"

    verb = Verb("reject", (Status.AWAITING_APPROVAL,), act)
    await run_bulk(queue, verb, ids, which, everything=everything, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command()
@bulk_options
@click.option("--priority", "-p", type=int, help="The new priority; higher is sooner. May also stand behind the IDs.")
@with_queue
async def reprioritise(
    queue: Queue,
    ids: tuple[str, ...],
    which: JobFilter,
    priority: int | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Change the priority of jobs that no worker holds: those named by ID, or all that match filters.

    `jobs reprioritise ID 10` is short for `jobs reprioritise ID --priority 10`.
    """
    if priority is None and ids and ids[-1].isdecimal() and len(ids[-1]) <= len("32767"):  # no id is as short
        ids, priority = ids[:-1], int(ids[-1])
    if priority is None:
        raise click.UsageError("say the new priority: --priority N")
    chosen = priority

    async def act(job_id: str) -> str:
        await queue.reprioritise(job_id, chosen)
        return f"priority {chosen}"

    verb = Verb("reprioritise", UNCLAIMED, act)
    await run_bulk(queue, verb, ids, which, everything=everything, dry_run=dry_run, yes=yes, as_json=as_json)


VERBS = (cancel, retry, approve, reject, reprioritise)
