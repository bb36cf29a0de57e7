"""The verbs of `fenceline jobs` that change jobs: one job, several, or all that match filters."""

from dataclasses import replace
from typing import Any

import click

from fenceline.cli.bulk import Choice, Verb, ask, bulk_command, bulk_options, run_bulk
from fenceline.cli.option_values import read_json
from fenceline.cli.options import with_queue, yes_option
from fenceline.cli.output import echo
from fenceline.cli.queue import Queue, QueueJob
from fenceline.model.counted import counted
from fenceline.model.status import FINAL, Status

UNCLAIMED = (Status.AWAITING_APPROVAL, Status.WAITING, Status.SCHEDULED, Status.QUEUED)
UNFINISHED = tuple(status for status in Status if status not in FINAL)

reason_option = click.option("--reason", help="Reason, recorded in the audit log.")
force_option = click.option(
    "--force", is_flag=True, help="Take a running job from its worker at once, without a grace period."
)


@bulk_command(reason_option, force_option, statuses=UNFINISHED)
async def cancel(job: QueueJob, reason: str | None, force: bool) -> str:
    """Cancel jobs: those named by ID, or all unfinished ones that match filters.

    A running job is asked to stop, and has a grace period to do so.
    """
    status = await job.cancel(reason, force=force)
    return "cancelled" if status is Status.CANCELLED else "asked to stop"


@bulk_command(statuses=FINAL, default_statuses=(Status.FAILED,), in_order=True)
async def retry(job: QueueJob) -> str:
    """Run finished jobs again, as new jobs: those named by ID, or all that match filters.

    With filters but without --status, only failed jobs are retried.
    """
    return f"retried as {(await job.retry()).id}"


@bulk_command(reason_option, statuses=(Status.AWAITING_APPROVAL,))
async def approve(job: QueueJob, reason: str | None) -> str:
    """Approve jobs that await approval: those named by ID, or all that match filters."""
    return f"approved, now {await job.approve(reason)}"


@bulk_command(reason_option, statuses=(Status.AWAITING_APPROVAL,))
async def reject(job: QueueJob, reason: str | None) -> str:
    """Reject jobs that await approval, which ends them: those named by ID, or all that match filters."""
    return f"rejected, now {await job.reject(reason)}"


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
        await queue.job(job_id).reprioritise(priority)
        return f"priority {priority}"

    await run_bulk(queue, Verb("reprioritise", UNCLAIMED, act), chosen)


@bulk_command(reason_option, statuses=(Status.SCHEDULED,))
async def run_now(job: QueueJob, reason: str | None) -> str:
    """Make jobs due now that are scheduled or wait for a retry: those named by ID, or all that match filters."""
    await job.run_now(reason)
    return "goes on now"


@bulk_command(statuses=FINAL)
async def delete(job: QueueJob) -> str:
    """Delete finished jobs and everything stored about them: those named by ID, or all that match filters."""
    await job.delete()
    return "deleted"


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--lane", required=True, help="Lane to move to.")
@reason_option
@with_queue
async def move(queue: Queue, ids: tuple[str, ...], lane: str, reason: str | None) -> None:
    """Move jobs that no worker holds to another lane."""
    for job in [queue.job(job_id) for job_id in ids]:  # a typo in one stops us before anything is done
        await job.move(lane, reason)
        echo(f"{job.id} moved to {lane}")


@click.command("signal")
@click.argument("job_id", metavar="ID")
@click.argument("name")
@click.option("--payload", callback=read_json, help="JSON payload of the signal.")
@with_queue
async def signal_job(queue: Queue, job_id: str, name: str, payload: Any) -> None:
    """Send a signal to a job whose handler waits for it, now or later.

    `jobs signal ID agent-returned --payload '{"ok": true}'`
    """
    job = queue.job(job_id)
    echo(f"{job.id} signalled, now {await job.signal(name, payload)}")


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@reason_option
@yes_option
@with_queue
async def erase(queue: Queue, ids: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Replace the args of finished jobs with a marker, for good.

    Results, logs and snapshots stay; an erased job cannot be retried. An unfinished job is refused: cancel it first.
    """
    jobs = [queue.job(job_id) for job_id in ids]  # a typo in one stops us before anything is done
    if not yes:
        ask(f"erase the args of {counted(len(ids), 'job')} for good")
    for job in jobs:
        await job.erase_args(reason)
        click.echo(f"{job.id} erased")


VERBS = (cancel, retry, approve, reject, reprioritise, run_now, signal_job, move, delete, erase)
