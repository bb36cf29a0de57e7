"""What `fenceline top` shows, as rows of text."""

import contextlib
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from fenceline.cli.job_text import draw_bar, error_line, log_text, progress_text, read_log
from fenceline.cli.output import STATUS_STYLES, duration
from fenceline.cli.queue import Queue
from fenceline.cli.timeline import draw_job
from fenceline.doctor.finding import Finding
from fenceline.errors import NotFound
from fenceline.model.job import JobFilter, JobRecord, Lane, LogLine
from fenceline.model.public_id import InvalidId, format_id, parse_id
from fenceline.model.records import WorkerRecord
from fenceline.model.visible import visible

RUNNING = JobFilter(statuses=("running", "claimed"))
WAITING = JobFilter(statuses=("queued", "awaiting_approval", "waiting", "scheduled"))
FAILED = JobFilter(statuses=("failed",))
SHOWN_RUNNING = 100
SHOWN_FAILED = 10
#: Failures of the last minutes are counted by lane, among this many of the newest.
COUNTED_FAILED = 100
FAILED_SECONDS = 600
#: After which a worker counts as lost where its lease is not known, which is the case over HTTP.
SILENT_SECONDS = 60
SHOWN_WAITING = 30
#: A filter looks at this many of the newest jobs of each sort.
SEARCHED = 1000
#: A server registers as a worker of this lane, to deliver webhooks. It runs nobody's jobs, so it is not counted.
WEBHOOKS = ["webhooks"]
BAR = 12
LOG_LINES = 200

LANE_COLUMNS = ("lane", "slots", "", "depth", "oldest", "per second", "failed", "suspects")
JOB_COLUMNS = ("job", "kind", "lane", "priority", "status", "for", "worker", "progress")
WORKER_COLUMNS = ("worker", "jobs", "lanes", "up", "heartbeat", "lease")

Row = tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One look at the queue."""

    lanes: list[Lane]
    rates: dict[str, float]
    jobs: list[JobRecord]
    failed: Counter[str]  # within the last ten minutes, by lane
    workers: list[WorkerRecord]
    at: datetime


async def look(queue: Queue, word: str = "") -> Snapshot:
    """With a word, only jobs that contain it; and the job whose id it is, in any case."""
    running = (await queue.list_jobs(RUNNING, limit=SEARCHED if word else SHOWN_RUNNING)).items
    waiting = (await queue.list_jobs(WAITING, limit=SEARCHED if word else SHOWN_WAITING)).items
    failed = (await queue.list_jobs(FAILED, limit=SEARCHED if word else COUNTED_FAILED)).items
    recent = datetime.now(UTC) - timedelta(seconds=FAILED_SECONDS)
    # The longest running first: those are the ones to look at.
    jobs = sorted(running, key=lambda job: job.claimed_at or job.created_at) + waiting
    jobs += failed if word else failed[:SHOWN_FAILED]
    return Snapshot(
        lanes=await queue.lanes.list(),
        rates=await queue.system.lane_rates(),
        jobs=await _find(queue, jobs, word) if word else jobs,
        failed=Counter(job.lane for job in failed if job.finished_at is not None and job.finished_at > recent),
        workers=await queue.system.workers(),
        at=datetime.now(UTC),
    )


async def _find(queue: Queue, jobs: list[JobRecord], word: str) -> list[JobRecord]:
    found = [job for job in jobs if fits(job, word)]
    with contextlib.suppress(InvalidId, NotFound):
        named = format_id(parse_id(word))
        if all(job.id != named for job in found):
            found.append(await queue.job(named).get())
    return found


def headline(seen: Snapshot) -> Text:
    depth = sum(lane.depth for lane in seen.lanes)
    in_use = sum(lane.in_use for lane in seen.lanes)
    lost = sum(is_lost(worker, seen.at) for worker in seen.workers)
    live = sum(not is_lost(worker, seen.at) for worker in seen.workers if worker.lanes != WEBHOOKS)
    return Text.assemble(
        (f"{in_use:,}", "bold"), " running   ",
        (f"{depth:,}", "bold"), " queued   ",
        (f"{sum(seen.rates.values()):,.1f}", "bold"), " ended per second   ",
        (f"{live:,}", "bold"), f" worker{'' if live == 1 else 's'}   ",
        (f"{lost:,} lost   " if lost else "", "bold red"),
        (f"{seen.at.astimezone():%H:%M:%S}", "dim"),
    )  # fmt: skip


def findings_line(findings: Sequence[Finding]) -> Text:
    """What `doctor` has found, in one line: problems first, and one example of each check."""
    subjects: dict[str, list[str]] = {}
    for finding in _in_order(findings):
        subjects.setdefault(finding.check, []).append(finding.subject)
    checks = [
        visible(f"{check} {found[0]}" + (f" and {len(found) - 1} more" if found[1:] else ""))
        for check, found in subjects.items()
    ]
    return Text(f"doctor: {', '.join(checks)} (f shows them)", no_wrap=True, overflow="ellipsis")


def findings_page(findings: Sequence[Finding]) -> list[RenderableType]:
    """What `doctor` has found, in full: what is wrong, whom it hurts and what to do."""
    parts: list[RenderableType] = [] if findings else [Text("doctor finds nothing")]
    for finding in _in_order(findings):
        style = "bold red" if finding.level == "problem" else "bold yellow"
        parts += [Text(visible(f"{finding.check}  {finding.subject}"), style=style), Text(visible(finding.what))]
        parts += [Text(visible(f"hurts: {finding.hurts}"), style="dim")] if finding.hurts else []
        parts += [Text(visible(f"do: {finding.do}")), ""]
    return parts


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.level != "problem")


def is_lost(worker: WorkerRecord, at: datetime) -> bool:
    """Whether its lease is over: others get its jobs, and it does not count as alive."""
    if worker.lease_seconds_left is not None:
        return worker.lease_seconds_left < 0
    return (at - worker.heartbeat_at).total_seconds() > SILENT_SECONDS


def fits(job: JobRecord, word: str) -> bool:
    """Whether a job contains the word in something that is shown."""
    shown = (job.id, job.kind, job.lane, job.tenant, job.status, job.worker or "", job.phase or "")
    return any(word.lower() in text.lower() for text in shown)


def lane_row(lane: Lane, rates: dict[str, float], failed: int = 0) -> Row:
    style = "green" if lane.enabled else "yellow"
    if lane.slots is None:
        bar, numbers = Text("█" * min(lane.in_use, BAR), style=style), f"{lane.in_use}/∞"
    else:
        share = lane.in_use / lane.slots if lane.slots else 0.0
        bar = Text(draw_bar(share, BAR), style="red" if lane.slots and share >= 1 and lane.depth else style)
        numbers = f"{lane.in_use}/{lane.slots}"
    rate = rates.get(lane.name, 0.0)
    return (
        Text(visible(lane.name), style="bold" if lane.enabled else "yellow"),
        bar,
        Text(numbers if lane.enabled else f"{numbers} drained", style="" if lane.enabled else "yellow"),
        Text(f"{lane.depth:,}", style="" if lane.depth else "dim"),
        Text(duration(lane.oldest_age_seconds)),
        Text(f"{rate:.1f}" if rate else "", justify="right"),
        Text(f"{failed:,}" if failed else "", style="red", justify="right"),
        Text(_suspects(lane), style="yellow"),
    )


def _suspects(lane: Lane) -> str:
    """Jobs that shared a process with a crash. They run alone, so they may wait while others do not."""
    waiting, running = lane.suspects_waiting or 0, lane.suspects_running or 0
    counts = [f"{waiting:,} to run alone" if waiting else "", f"{running:,} running alone" if running else ""]
    return ", ".join(filter(None, counts))


def job_row(job: JobRecord, at: datetime) -> Row:
    since = job.started_at or job.claimed_at or job.created_at
    remark = "asked to stop" if job.cancel_requested_at else progress_text(job.phase, job.progress, bar=BAR)
    if job.error:
        remark = error_line(job.error)
    return (
        Text(job.id),
        Text(visible(job.kind)),
        Text(visible(job.lane)),
        Text(str(job.priority)),
        Text(job.status, style=STATUS_STYLES.get(job.status, "")),
        Text(duration(max((at - since).total_seconds(), 0.0))),
        Text(visible(job.worker or "")),
        Text(visible(remark) or (f"for {job.waiting_for}" if job.waiting_for else "")),
    )


def worker_row(worker: WorkerRecord, at: datetime) -> Row:
    silent = max((at - worker.heartbeat_at).total_seconds(), 0.0)
    left = worker.lease_seconds_left
    lost = "red" if is_lost(worker, at) else ""
    return (
        Text(visible(worker.name), style=lost),
        Text(str(worker.running)),
        Text("all" if worker.lanes is None else visible(", ".join(worker.lanes))),
        Text(duration(max((at - worker.started_at).total_seconds(), 0.0))),
        Text(f"{duration(silent)} ago")
        if worker.blocked_seconds is None
        else Text(f"blocked for {duration(worker.blocked_seconds)} {worker.blocked_by or ''}".rstrip(), style="yellow"),
        Text("lost" if lost else "" if left is None else duration(left), style=lost),
    )


async def job_page(queue: Queue, job_id: str, *, width: int) -> list[RenderableType]:
    """Everything about a job: why it is where it is, its timeline and errors, the end of its log."""
    named = queue.job(job_id)
    job = await named.get()
    explanation = None if job.status.is_final else await named.explain()
    parts = list(draw_job(job, await named.attempts(), await named.events(), explanation, width=width))
    lines: deque[LogLine] = deque(maxlen=LOG_LINES)
    async for line in read_log(named):
        lines.append(line)
    if lines:
        parts += ["", Text("log", style="bold")]
    return parts + [Text(visible(log_text(line))) for line in lines]
