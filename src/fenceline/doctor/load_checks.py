"""Checks of how the work goes: what stands still, grows, fails or waits for people."""

import json
from collections.abc import AsyncIterator

from fenceline.database.definitions import Connection
from fenceline.doctor.finding import Finding, Limits
from fenceline.model.counted import counted


async def check_backlog(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.stalled_lanes($1)", limits.patience_seconds):
        waits = f"{counted(row['depth'], 'job')} waiting, the oldest for {row['oldest_age_seconds']:.0f} s"
        if row["reason"] == "stands":
            what = f"{waits}, and nothing was claimed meanwhile, though a live worker serves the lane"
            do = f"`fenceline jobs explain {row['example']}` says why the first waits; look into the workers' logs"
        else:
            what = f"{waits}, and more come than end"
            do = f"start more workers (`fenceline worker APP --lanes {row['lane']}`), or see `fenceline stats slow`"
        yield Finding(
            check="backlog",
            subject=row["lane"],
            what=what,
            do=do,
            seconds=row["oldest_age_seconds"],
            hurts=f"all jobs of lane {row['lane']}",
        )


async def check_full_lanes(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.full_lanes($1)", limits.patience_seconds):
        if row["seconds"] < limits.holder_seconds:
            continue
        slots = "the only slot is" if row["slots"] == 1 else f"all {row['slots']} slots are"
        yield Finding(
            check="full_lane",
            subject=row["lane"],
            what=f"{slots} in use, {row['holders']} for long: job {row['holder']} has had its own for "
            f"{row['seconds']:.0f} s",
            do=f"`fenceline jobs explain {row['holder']}`; more slots: "
            f"`fenceline lanes set {row['lane']} --slots {row['slots'] + 1}`",
            seconds=row["seconds"],
            hurts=f"{counted(row['depth'], 'job')} waiting in lane {row['lane']}",
        )


async def check_approvals(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.late_approvals($1)", limits.approval_seconds):
        yield Finding(
            level="notice",
            check="approval",
            subject=f"{row['tenant']} {row['kind']}",
            what=f"{counted(row['jobs'], 'job')} of kind {row['kind']} (tenant {row['tenant']}) awaiting approval, "
            f"the first since {row['since']:%Y-%m-%d %H:%M}",
            do=f"`fenceline jobs approve {row['example']}`, or `fenceline jobs reject {row['example']}`",
            hurts=f"tenant {row['tenant']}",
        )


async def check_long_locks(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.long_locks($1)", limits.holder_seconds):
        if row["holder"] is None:
            holder = f"code outside jobs ({row['holder_actor']})"
            do = "look at that program: its lock ends with its process; `fenceline locks` shows who holds what"
        else:
            holder = f"job {row['holder']}"
            do = (
                f"`fenceline jobs explain {row['holder']}`; if it does not get on: "
                f"`fenceline jobs cancel {row['holder']}`"
            )
        yield Finding(
            check="lock",
            subject=f"{row['namespace']}/{row['name']}",
            what=f"{holder} has held the lock since {row['held_since']:%Y-%m-%d %H:%M:%S}, with "
            f"{counted(row['waiters'], 'other')} waiting for it",
            do=do,
            hurts=f"{counted(row['waiters'], 'waiter')} of tenant {row['tenant']}",
        )


async def check_handlers(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.differing_workers()"):
        missing = ", ".join(row["missing"])
        yield Finding(
            level="notice",
            check="handlers_differ",
            subject=", ".join(row["lanes"] or ["all lanes"]),
            what=f"handlers that others of the same lanes have are missing on {counted(row['others'], 'worker')} "
            f"({row['example']} among them): {missing}",
            do="finish the deployment, or stop the old workers",
            hurts=f"jobs of {missing} wait for the other {counted(row['workers'], 'worker')}",
        )


async def check_signatures(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.differing_signatures()"):
        versions = [
            f"{row['kind']}({', '.join(_parameter(*item) for item in version['takes'].items())}) on "
            f"{counted(version['workers'], 'worker')} ({version['example']} among them)"
            for version in json.loads(row["signatures"])
        ]
        refused = f"; some of them have refused {counted(row['refused'], 'job')}" if row["refused"] else ""
        yield Finding(
            level="notice",
            check="signatures_differ",
            subject=row["kind"],
            what=f"its handlers differ: {'; '.join(versions)}{refused}",
            do="finish the deployment, or stop the old workers",
            hurts=f"jobs of kind {row['kind']} that only some of these take: they wait for those",
        )


def _parameter(name: str, is_required: bool) -> str:  # noqa: FBT001 - as in the row
    return name if is_required else f"{name}=…"


async def check_failing_kinds(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.failing_kinds()"):
        before = "" if row["failed_before"] is None else f"; in the week before it was {row['failed_before']:.0%}"
        last = "" if row["error"] is None else f"; last: {row['error']}"
        yield Finding(
            check="failing_kind",
            subject=row["kind"],
            what=f"{row['failed']} of {row['ended']} jobs that ended within the last hour failed{before}{last}",
            do=f"`fenceline jobs show {row['example']}`; when it is mended: `fenceline jobs retry --status failed "
            f"--kind {row['kind']} --created-after 1d`",
            hurts=f"jobs of kind {row['kind']}",
        )


async def check_retries(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch("select * from fenceline.retry_storms($1)", limits.patience_seconds):
        last = "" if row["error"] is None else f"; for instance {row['error']}"
        yield Finding(
            check="retry_storm",
            subject=row["kind"],
            what=f"{row['jobs']:,} jobs wait for their retry, while {row['ended']:,} ended lately{last}",
            do=f"`fenceline jobs explain {row['example']}`; to stop them: `fenceline jobs cancel --status scheduled "
            f"--kind {row['kind']}`",
            hurts=f"jobs of kind {row['kind']}, and whatever they call",
        )
