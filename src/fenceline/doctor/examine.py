"""All checks, one after the other, on one connection."""

from collections.abc import AsyncIterator, Callable

import asyncpg

from fenceline.database.replace_code import Connection
from fenceline.doctor import queue_checks, schema_checks, server_checks
from fenceline.doctor.finding import Finding, Limits

Check = Callable[[Connection, Limits], AsyncIterator[Finding]]

SERVER: tuple[Check, ...] = (
    server_checks.check_server_version,
    server_checks.check_settings,
    server_checks.check_replication,
    server_checks.check_visibility,
    server_checks.check_horizon,
    server_checks.check_notifications,
    server_checks.check_listeners,
)
#: These need a schema that fits this program.
QUEUE: tuple[Check, ...] = (
    schema_checks.check_functions,
    schema_checks.check_roles,
    server_checks.check_dead_rows,
    queue_checks.check_partitions,
    queue_checks.check_fleet,
    queue_checks.check_lanes,
    queue_checks.check_kinds,
    queue_checks.check_stuck_jobs,
    queue_checks.check_locks,
)


async def examine(connection: Connection, limits: Limits | None = None) -> list[Finding]:
    """What is wrong; nothing, when all is well. What this role may not look at becomes a notice."""
    given = limits or Limits()
    findings = [finding for check in SERVER for finding in await _run(check, connection, given)]
    schema = await _run(schema_checks.check_schema_version, connection, given)
    findings += schema
    if not schema:
        findings += [finding for check in QUEUE for finding in await _run(check, connection, given)]
    return findings


async def _run(check: Check, connection: Connection, limits: Limits) -> list[Finding]:
    name = check.__name__.removeprefix("check_")
    try:
        return [finding async for finding in check(connection, limits)]
    except asyncpg.InsufficientPrivilegeError as error:
        return [
            Finding(
                level="notice",
                check=name,
                subject="not checked",
                what=f"this role may not look: {error}",
                do="run doctor as a role that has fenceline_admin and pg_monitor",
            )
        ]
