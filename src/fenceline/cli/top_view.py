"""What `fenceline top` shows, as rows of text: no terminal here, and no database."""

from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text

from fenceline.cli.output import STATUS_STYLES, duration
from fenceline.cli.progress_text import draw_bar, progress_text
from fenceline.cli.queue import JobFilter, Queue
from fenceline.model.job import JobRecord, Lane
from fenceline.model.observed import WorkerRecord

RUNNING = JobFilter(status=("running", "claimed"))
WAITING = JobFilter(status=("queued", "awaiting_approval", "waiting", "scheduled"))
SHOWN_RUNNING = 100
SHOWN_WAITING = 30
BAR = 12

LANE_COLUMNS = ("lane", "slots", "", "depth", "oldest", "per second")
JOB_COLUMNS = ("job", "kind", "lane", "priority", "status", "for", "worker", "progress")
WORKER_COLUMNS = ("worker", "jobs", "lanes", "up", "heartbeat", "lease")

Row = tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One look at the queue."""

    lanes: list[Lane]
    rates: dict[str, float]
    jobs: list[JobRecord]
    workers: list[WorkerRecord]
    at: datetime


async def look(queue: Queue) -> Snapshot:
    running = await queue.list_jobs(RUNNING, limit=SHOWN_RUNNING)
    waiting = await queue.list_jobs(WAITING, limit=SHOWN_WAITING)
    return Snapshot(
        lanes=await queue.lanes(),
        rates=await queue.lane_rates(),
        # The longest running first: those are the ones to look at.
        jobs=sorted(running.items, key=lambda job: job.claimed_at or job.created_at) + waiting.items,
        workers=await queue.workers(stopped=False),
        at=datetime.now(UTC),
    )


def headline(seen: Snapshot) -> Text:
    depth = sum(lane.depth for lane in seen.lanes)
    in_use = sum(lane.in_use for lane in seen.lanes)
    return Text.assemble(
        (f"{in_use:,}", "bold"), " running   ",
        (f"{depth:,}", "bold"), " queued   ",
        (f"{sum(seen.rates.values()):,.1f}", "bold"), " ended per second   ",
        (f"{len(seen.workers):,}", "bold"), " workers   ",
        (f"{seen.at.astimezone():%H:%M:%S}", "dim"),
    )  # fmt: skip


def lane_row(lane: Lane, rates: dict[str, float]) -> Row:
    style = "green" if lane.enabled else "yellow"
    if lane.slots is None:
        bar, numbers = Text("█" * min(lane.in_use, BAR), style=style), f"{lane.in_use}/∞"
    else:
        share = lane.in_use / lane.slots if lane.slots else 0.0
        bar = Text(draw_bar(share, BAR), style="red" if lane.slots and share >= 1 and lane.depth else style)
        numbers = f"{lane.in_use}/{lane.slots}"
    rate = rates.get(lane.name, 0.0)
    return (
        Text(lane.name, style="bold" if lane.enabled else "yellow"),
        bar,
        Text(numbers if lane.enabled else f"{numbers} drained", style="" if lane.enabled else "yellow"),
        Text(f"{lane.depth:,}", style="" if lane.depth else "dim"),
        Text(duration(lane.oldest_age_seconds)),
        Text(f"{rate:.1f}" if rate else "", justify="right"),
    )


def job_row(job: JobRecord, at: datetime) -> Row:
    since = job.started_at or job.claimed_at or job.created_at
    told = "asked to stop" if job.cancel_requested_at else progress_text(job.phase, job.progress, bar=BAR)
    return (
        Text(job.id),
        Text(job.kind),
        Text(job.lane),
        Text(str(job.priority)),
        Text(job.status, style=STATUS_STYLES.get(job.status, "")),
        Text(duration(max((at - since).total_seconds(), 0.0))),
        Text(job.worker or ""),
        Text(told or (f"for {job.waiting_for}" if job.waiting_for else "")),
    )


def worker_row(worker: WorkerRecord, at: datetime) -> Row:
    silent = max((at - worker.heartbeat_at).total_seconds(), 0.0)
    left = worker.lease_seconds_left
    return (
        Text(worker.name),
        Text(str(worker.running)),
        Text("all" if worker.lanes is None else ", ".join(worker.lanes)),
        Text(duration(max((at - worker.started_at).total_seconds(), 0.0))),
        Text(f"{duration(silent)} ago"),
        Text("" if left is None else "over" if left < 0 else duration(left), style="red" if (left or 0) < 0 else ""),
    )
