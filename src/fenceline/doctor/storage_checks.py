"""Checks of what the server may slowly run out of: disk, WAL, transaction ids."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from fenceline.database.definitions import Connection
from fenceline.doctor.finding import Finding, Limits

GIB = 1024**3
#: Autovacuum begins at 200 million; at two thousand million the server stops.
OLD_TRANSACTIONS = 1_000_000_000


async def check_wraparound(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    age = await connection.fetchval(
        "select greatest(age(datfrozenxid), mxid_age(datminmxid)) from pg_database where datname = current_database()"
    )
    if age > OLD_TRANSACTIONS:
        yield Finding(
            check="wraparound",
            subject="transaction ids",
            what=f"the oldest transaction id is {age:,} old: at 2,000,000,000 the server accepts no writes",
            do="end what pins the vacuum horizon, if anything is reported about it; then `vacuumdb --freeze --all`",
            hurts="the whole server",
        )


async def check_slots(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """Slots keep WAL until their consumers have read it, and a full disk stops the server."""
    if await connection.fetchval("select pg_is_in_recovery()"):
        return
    for row in await connection.fetch(
        """
        select slot_name, active, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint as bytes
        from pg_replication_slots
        where wal_status in ('unreserved', 'lost') or pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $1
        """,
        limits.slot_bytes,
    ):
        behind = "an unknown amount" if row["bytes"] is None else f"{row['bytes'] / GIB:.2f} GiB"
        yield Finding(
            check="replication_slot",
            subject=row["slot_name"],
            what=f"the slot keeps {behind} of WAL ({row['wal_status']}), and "
            + ("its consumer is slow" if row["active"] else "nobody reads from it"),
            do="start its consumer, set max_slot_wal_keep_size, or: "
            f"select pg_drop_replication_slot('{row['slot_name']}');",
            hurts="the whole server, when its disk is full",
        )


async def check_wal(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    if not await connection.fetchval("select has_function_privilege('pg_ls_waldir()', 'execute')"):
        return
    row = await connection.fetchrow(
        "select sum(size)::bigint as bytes, 1024.0 * 1024 * (select setting::bigint from pg_settings "
        "where name = 'max_wal_size') as most from pg_ls_waldir()"
    )
    if row is not None and row["bytes"] > max(4 * row["most"], GIB):
        yield Finding(
            check="wal",
            subject="pg_wal",
            what=f"{row['bytes'] / GIB:.1f} GiB of WAL are kept: {row['bytes'] / float(row['most']):.0f} times what "
            "max_wal_size says",
            do="look at archive_command, replication slots and standbys: one of them does not keep up",
            hurts="the whole server, when its disk is full",
        )


async def check_disk(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """Only if the server is on this machine: otherwise its folder cannot be seen."""
    folder = await connection.fetchval(
        "select setting from pg_settings where name = 'data_directory' "
        "and coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1', true)"
    )
    if not folder or not (Path(folder) / "PG_VERSION").exists():
        return
    disk = shutil.disk_usage(folder)
    if disk.free < limits.free_share * disk.total:
        yield Finding(
            check="disk",
            subject=folder,
            what=f"{disk.free / GIB:.1f} GiB of {disk.total / GIB:.0f} are free where the database is",
            do="make room; `fenceline retention` says how long finished jobs are kept, and sets it",
            hurts="the whole server: without room it stops",
        )
