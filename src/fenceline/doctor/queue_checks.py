"""Checks of the queue and its fleet, by reads that the role fenceline_reader may call."""

import json
import time
from collections.abc import AsyncIterator

from fenceline.database.replace_code import Connection
from fenceline.doctor.finding import Finding, Limits

#: Workers and servers do upkeep once a minute.
UPKEEP_SECONDS = 600.0


async def check_lanes(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.unserved_lanes($1)", limits.patience_seconds):
        yield Finding(
            check="lane_without_workers",
            subject=row["lane"],
            what=f"{row['depth']} jobs could start, the oldest for {row['oldest_age_seconds']:.0f} s, and no live "
            "worker serves the lane",
            do=f"start `fenceline worker APP --lanes {row['lane']}`, or look why those that should serve it do not run",
        )


async def check_kinds(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.unknown_kinds($1)", limits.patience_seconds):
        yield Finding(
            check="unknown_kind",
            subject=row["kind"],
            what=f"{row['jobs']} jobs in lane {row['lane']}, {row['example']} among them, are of a kind that no live "
            "worker of the lane has a handler for",
            do="deploy a worker whose app has the handler, or cancel the jobs: "
            f"`fenceline jobs cancel --kind {row['kind']}`",
        )


async def check_stuck_jobs(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.stuck_jobs()"):
        jobs, example = row["jobs"], row["example"]
        match row["reason"]:
            case "no_slots":
                what = f"{jobs} jobs wait in lane {row['subject']}, which has 0 slots"
                do = f"`fenceline lanes set {row['subject']} --slots N`"
            case "no_lane":
                what = f"{jobs} jobs are in lane {row['subject']}, which does not exist"
                do = f"create it: `fenceline lanes set {row['subject']} --create`"
            case "dependency":
                what = f"{jobs} jobs wait for other jobs, of which none is on its way any more"
                do = f"cancel them (`fenceline jobs cancel {example}`) and enqueue them again"
            case _:
                what = f"{jobs} jobs are neither on their way nor ended: rows are missing"
                do = (
                    "somebody wrote to Fenceline's tables, or the database was damaged: look at what was restored or "
                    "edited, and enqueue the jobs again"
                )
        yield Finding(check="stuck_jobs", subject=example, what=f"{what} (for example {example})", do=do)


async def check_locks(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    tables = {"resource_lock": "resource_lock", "key": "key_holder", "dedupe_key": "dedupe"}
    for row in await connection.fetch("select * from fenceline.lost_locks()"):
        yield Finding(
            check="lost_lock",
            subject=f"{row['what']} {row['name']}",
            what=f"held for tenant {row['tenant']} by job {row['job']}, which has ended or is gone",
            do=f"as the schema's owner, remove the row from fenceline.{tables[row['what']]} "
            f"where job_id = fenceline.parse_public_id('{row['job']}')",
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
        yield Finding(check="partitions", subject=row["name"], what=what, do=do)


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
        )
    versions = health["versions"]
    if len(versions) > 1:
        shown = ", ".join(f"{count} of {version}" for version, count in sorted(versions.items()))
        yield Finding(
            check="mixed_versions",
            subject="workers",
            what=f"live workers are of different versions: {shown}",
            do="finish the rollout, or stop the old ones",
        )
    for lost in health["unswept"]:
        if lost["seconds"] >= limits.patience_seconds / 10:
            yield Finding(
                check="lost_worker",
                subject=lost["worker"],
                what=f"its lease ended {lost['seconds']:.0f} s ago and nobody took back its {lost['attempts']} jobs "
                "and the locks they hold",
                do="run a worker or a server, which do so twice a second; or once by hand: `fenceline sweep`",
            )
    overdue = health["overdue_timers"]
    if overdue["jobs"] and overdue["seconds"] >= limits.patience_seconds / 10:
        yield Finding(
            check="overdue",
            subject="timers",
            what=f"{overdue['jobs']} scheduled jobs are due, the first for {overdue['seconds']:.0f} s, and nobody "
            "hands them to the lanes",
            do="run a worker or a server",
        )
    late = health["overdue_schedules"]
    if late["schedules"] and late["seconds"] >= limits.patience_seconds / 10:
        yield Finding(
            check="overdue",
            subject="schedules",
            what=f"{late['schedules']} schedules are due, the first for {late['seconds']:.0f} s, and nobody fires them",
            do="run a worker or a server",
        )
    if versions and health["ran"].get("upkeep", 0.0) > UPKEEP_SECONDS:
        yield Finding(
            check="upkeep",
            subject="upkeep",
            what=f"partitions and retention were last seen to {health['ran']['upkeep']:.0f} s ago",
            do="look into the workers' logs for `maintenance failed`; by hand: select fenceline.upkeep(0);",
        )
    for lane, jobs in health["drained"].items():
        yield Finding(
            level="notice",
            check="drained",
            subject=lane,
            what=f"the lane is drained, and {jobs} jobs wait in it",
            do=f"when you are done: `fenceline lanes resume {lane}`",
        )
    if health["draining"]:
        yield Finding(
            level="notice",
            check="drained",
            subject="system",
            what="the system is draining: new jobs are refused",
            do="when you are done: `fenceline resume`",
        )
