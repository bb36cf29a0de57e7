"""All checks, one after the other, on one connection."""

from collections.abc import AsyncIterator, Callable

import asyncpg

from fenceline.database.definitions import Connection
from fenceline.doctor import load_checks, postgres_checks, queue_checks, schema_checks, storage_checks
from fenceline.doctor.finding import Finding, Limits

Check = Callable[[Connection, Limits], AsyncIterator[Finding]]

SERVER: tuple[Check, ...] = (
    postgres_checks.check_server_version,
    postgres_checks.check_settings,
    postgres_checks.check_isolation,
    postgres_checks.check_replication,
    postgres_checks.check_visibility,
    postgres_checks.check_horizon,
    postgres_checks.check_advisory_locks,
    postgres_checks.check_notifications,
    postgres_checks.check_listeners,
    storage_checks.check_wraparound,
    storage_checks.check_slots,
    storage_checks.check_wal,
    storage_checks.check_disk,
)
#: These need a schema that this version can use.
QUEUE: tuple[Check, ...] = (
    schema_checks.check_functions,
    schema_checks.check_roles,
    postgres_checks.check_dead_rows,
    queue_checks.check_partitions,
    queue_checks.check_retention,
    queue_checks.check_fleet,
    queue_checks.check_lanes,
    queue_checks.check_deliveries,
    queue_checks.check_kinds,
    queue_checks.check_suspects,
    queue_checks.check_blocked,
    queue_checks.check_stuck_jobs,
    queue_checks.check_locks,
    load_checks.check_backlog,
    load_checks.check_full_lanes,
    load_checks.check_approvals,
    load_checks.check_long_locks,
    load_checks.check_handlers,
    load_checks.check_signatures,
    load_checks.check_failing_kinds,
    load_checks.check_retries,
)


async def examine(connection: Connection, limits: Limits | None = None) -> list[Finding]:
    """Everything that is wrong. A check that this role may not make becomes a notice."""
    limits = limits or Limits()
    findings = [finding for check in SERVER for finding in await _run(check, connection, limits)]
    schema = await _run(schema_checks.check_schema_version, connection, limits)
    if schema:
        return findings + schema
    return findings + [finding for check in QUEUE for finding in await _run(check, connection, limits)]


async def _run(check: Check, connection: Connection, limits: Limits) -> list[Finding]:
    try:
        return [finding async for finding in check(connection, limits)]
    except asyncpg.InsufficientPrivilegeError as error:
        return [
            Finding(
                level="notice",
                check=check.__name__.removeprefix("check_"),
                subject="not checked",
                what=f"this role may not look: {error}",
                do="run doctor as a role that has fenceline_admin and pg_monitor",
            )
        ]
