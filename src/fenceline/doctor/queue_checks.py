"""Checks of the queue and its fleet, with functions that the role fenceline_reader may call."""

import json
import time
from collections.abc import AsyncIterator
from datetime import datetime

from fenceline.database.definitions import Connection
from fenceline.doctor.finding import Finding, Limits
from fenceline.model.counted import counted

#: Workers and servers do upkeep once a minute.
UPKEEP_SECONDS = 600.0
#: With the time of the example, which is the oldest of these jobs.
UNKNOWN_KINDS = (
    "select *, fenceline.id_time(fenceline.parse_public_id(example)) as since from fenceline.unknown_kinds(0)"
)
STUCK_JOBS = "select *, fenceline.id_time(fenceline.parse_public_id(example)) as since from fenceline.stuck_jobs()"
#: retention_backlog does not count beyond this.
RETENTION_COUNTED = 10_000


async def check_lanes(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.unserved_lanes(0)"):
        yield Finding(
            check="lane_without_workers",
            subject=row["lane"],
            what=f"{counted(row['depth'], 'job')} could start, the oldest for {row['oldest_age_seconds']:.0f} s, and "
            "no live worker serves the lane",
            do=f"start `fenceline worker APP --lanes {row['lane']}`, or look why those that should serve it do not run",
            seconds=row["oldest_age_seconds"],
            hurts=f"all jobs of lane {row['lane']}",
        )


async def check_deliveries(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """A message that nobody answers is sent again within seconds, so a job that waits longer has another problem."""
    for row in await connection.fetch("select * from fenceline.describe_lanes() as lane"):
        lane = json.loads(row["lane"])
        age = lane["oldest_age_seconds"] or 0.0
        may_run = lane["enabled"] and lane["slots"] != 0 and lane["rate_per_second"] is None
        is_late = lane["depth"] and age >= min(limits.unanswered_seconds, limits.patience_seconds)
        if lane["delivery"] in (None, "postgres") or not may_run or lane["in_use"] or not is_late:
            continue
        name = lane["delivery"]
        address = " with FENCELINE_REDIS_URL" if name == "arq" else f" whose app has the delivery {name}"
        yield Finding(
            check="delivery",
            subject=lane["name"],
            what=f"{counted(lane['depth'], 'job')} of a lane that {name} delivers could start, the oldest for "
            f"{age:.0f} s, and nobody claims them; for {lane['unsent']} no message is under way",
            do=f"look whether its server answers, and start workers{address}; without it: "
            f"`fenceline lanes set {lane['name']} --delivery postgres`",
            seconds=age,
            hurts=f"all jobs of lane {lane['name']}",
        )


async def check_kinds(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch(UNKNOWN_KINDS):
        yield Finding(
            check="unknown_kind",
            subject=row["kind"],
            what=f"{counted(row['jobs'], 'job')} in lane {row['lane']}, for example {row['example']}, of a kind that "
            f"no live worker of the lane has a handler for; the first has waited since {_minute(row['since'])}",
            do="deploy a worker whose app has the handler, or cancel the jobs: "
            f"`fenceline jobs cancel --kind {row['kind']}`",
            hurts=f"jobs of kind {row['kind']}",
        )


async def check_suspects(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.suspects()"):
        if row["waiting"] == 0:
            continue
        is_late = row["oldest_age_seconds"] >= limits.patience_seconds
        yield Finding(
            level="problem" if is_late else "notice",
            check="suspects",
            subject=f"{row['lane']} {row['kind']}",
            what=f"{counted(row['waiting'], 'job')} that shared a process with a crash, for example {row['example']}, "
            f"to be run alone, the first waiting for {row['oldest_age_seconds']:.0f} s; {row['running']} run alone now",
            do="look for the crash in the workers' logs; more run at a time with `--isolated N`, of workers or runners"
            if row["served"]
            else "deploy a worker whose app has the handler, or cancel them: "
            f"`fenceline jobs cancel --kind {row['kind']}`",
            seconds=row["oldest_age_seconds"],
            hurts=f"suspects among the jobs of kind {row['kind']}",
        )


async def check_blocked(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.blocked_workers()"):
        yield Finding(
            level="problem" if row["seconds"] >= limits.patience_seconds else "notice",
            check="blocked_worker",
            subject=row["name"],
            what=f"its event loop has not turned for {row['seconds']:.0f} s"
            + (f": the handler of job {row['job']} is on it" if row["job"] else "")
            + "; nothing else of that process goes on",
            do=(f"`fenceline jobs cancel --force {row['job']}`; then " if row["job"] else "")
            + "make the handler a `def` (it runs in a thread), or `isolated=True`, and give its kind a timeout",
            seconds=row["seconds"],
            hurts="every job of that process",
        )


async def check_stuck_jobs(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch(STUCK_JOBS):
        jobs, example = counted(row["jobs"], "job"), row["example"]
        match row["reason"]:
            case "no_slots":
                what = f"{jobs} waiting in lane {row['subject']}, which has 0 slots"
                do = f"`fenceline lanes set {row['subject']} --slots N`"
            case "no_lane":
                what = f"{jobs} in lane {row['subject']}, which does not exist"
                do = f"create it: `fenceline lanes set {row['subject']} --slots 4`"
            case "dependency":
                what = f"{jobs} waiting for other jobs, none of which will ever end"
                do = f"cancel them (`fenceline jobs cancel {example}`) and enqueue them again"
            case _:
                what = f"{jobs} neither on the way nor ended: rows are missing"
                do = (
                    "somebody wrote to Fenceline's tables, or the database was damaged: look at what was restored or "
                    "edited, and enqueue the jobs again"
                )
        yield Finding(
            check="stuck_jobs",
            subject=example,
            what=f"{what} (for example {example}, of {_minute(row['since'])})",
            do=do,
            hurts=f"{jobs}, and whoever waits for them",
        )


async def check_locks(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    tables = {"resource_lock": "resource_lock", "key": "key_holder", "dedupe_key": "dedupe"}
    for row in await connection.fetch("select * from fenceline.lost_locks()"):
        yield Finding(
            check="lost_lock",
            subject=f"{row['what']} {row['name']}",
            what=f"held for tenant {row['tenant']} by job {row['job']}, which has ended or is gone",
            do=f"as the schema's owner, remove the row from fenceline.{tables[row['what']]} "
            f"where job_id = fenceline.parse_public_id('{row['job']}')",
            hurts=f"jobs of tenant {row['tenant']} with the same one",
        )


async def check_partitions(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    upkeep = "run a worker or a server, which see to it once a minute, or: "
    for row in await connection.fetch("select * from fenceline.partition_problems()"):
        match row["problem"]:
            case "missing":
                what = "the partition is missing: jobs of that day go to the default one, and expire row by row"
                do = f"{upkeep}select fenceline.create_partitions(); (a day that has begun without one stays without)"
            case "unpaired":
                what = "the day has a partition of one of job and history only"
                do = f"{upkeep}select fenceline.create_partitions();"
            case "detached":
                what = "the table looks like a partition and is attached to nothing: the jobs in it are not seen"
                do = f"attach it again, or, if its jobs are not wanted: drop table fenceline.{row['name']};"
            case _:
                what = "everything in the partition is past its retention, and it is still there"
                do = "`fenceline prune`; if that does not help, something holds locks on fenceline.job for long"
        yield Finding(check="partitions", subject=row["name"], what=what, do=do, hurts="retention, and so the disk")


async def check_retention(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    late = await connection.fetchrow("select jobs, since from fenceline.retention_backlog($1)", limits.patience_seconds)
    if late is not None and late["jobs"]:
        many = "10,000 or more" if late["jobs"] >= RETENTION_COUNTED else f"{late['jobs']:,}"
        yield Finding(
            check="retention",
            subject="finished jobs",
            what=f"{many} finished jobs should be gone, the first since {_minute(late['since'])}: retention is "
            "not keeping up",
            do="run a worker or a server, which spend a quarter of their maintenance on it; or at once by hand: "
            "`fenceline prune`",
            hurts="the disk",
        )


async def check_fleet(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    before = time.time()
    health = json.loads(await connection.fetchval("select fenceline.fleet_health()"))
    after = time.time()
    skew = health["clock"] - (before + after) / 2
    if abs(skew) > limits.clock_seconds + (after - before) / 2:
        yield Finding(
            check="clock_skew",
            subject="clock",
            what=f"the database's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's",
            do="let both follow a time server; run_at and expires_at mean the database's time",
            hurts="jobs with a run_at or expires_at of this machine's clock",
        )
    versions = health["versions"]
    if len(versions) > 1:
        shown = ", ".join(f"{count} of {version}" for version, count in sorted(versions.items()))
        yield Finding(
            check="mixed_versions",
            subject="workers",
            what=f"live workers are of different versions: {shown}",
            do="finish the rollout, or stop the old ones",
            hurts="jobs that need what only the newer ones can do",
        )
    for lost in health["unswept"]:
        if lost["seconds"] >= limits.overdue_seconds:
            yield Finding(
                check="lost_worker",
                subject=lost["worker"],
                what=f"its lease ended {lost['seconds']:.0f} s ago and nobody took back its "
                f"{counted(lost['attempts'], 'job')}, with all locks",
                do="run a worker or a server, which do so twice a second; or once by hand: `fenceline sweep`",
                seconds=lost["seconds"],
                hurts=f"its {counted(lost['attempts'], 'job')}, and who waits for their locks",
            )
    for subject, noun, why, hurts in (
        ("timers", "job", "nobody hands what is due to the lanes", "these jobs, and all that become due"),
        ("schedules", "schedule", "nobody fires them", "their jobs, which are not enqueued"),
    ):
        late = health[f"overdue_{subject}"]
        count, seconds = late[f"{noun}s"], late["seconds"]
        if count and seconds >= limits.overdue_seconds:
            yield Finding(
                check="overdue",
                subject=subject,
                what=f"{counted(count, noun)} overdue, the first for {seconds:.0f} s: {why}",
                do="run a worker or a server",
                seconds=seconds,
                hurts=hurts,
            )
    if versions and health["ran"].get("upkeep", 0.0) > UPKEEP_SECONDS:
        yield Finding(
            check="upkeep",
            subject="upkeep",
            what=f"partitions and retention were last seen to {health['ran']['upkeep']:.0f} s ago",
            do="look into the workers' logs for `maintenance failed`; by hand: select fenceline.upkeep(0);",
            seconds=health["ran"]["upkeep"],
            hurts="retention, and so the disk",
        )
    for lane, jobs in health["drained"].items():
        since = _minute(datetime.fromisoformat(health["drained_since"][lane]))
        yield Finding(
            level="notice",
            check="drained",
            subject=lane,
            what=f"the lane is drained, with {counted(jobs, 'job')} waiting in it, the first since {since}",
            do=f"when you are done: `fenceline lanes resume {lane}`",
            hurts=f"all jobs of lane {lane}",
        )
    if health["draining"]:
        since = health["draining_since"]
        when = "" if since is None else f" since {_minute(datetime.fromisoformat(since))}"
        yield Finding(
            level="notice",
            check="drained",
            subject="system",
            what=f"the system is draining: new jobs are refused{when}",
            do="when you are done: `fenceline resume`",
            hurts="whoever enqueues from outside",
        )


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
