"""Checks of the PostgreSQL server: version, settings, vacuum, sessions. They need no rights on Fenceline's schema."""

import asyncio
from collections.abc import AsyncIterator

from fenceline.database.definitions import Connection
from fenceline.doctor.finding import Finding, Limits

OLDEST_SERVER = 14
NEWEST_SERVER = 18

# Setting → the value that is a problem, and its consequence.
SETTINGS = {
    "fsync": ("off", "a crash of the machine can lose or corrupt jobs that were acknowledged"),
    "full_page_writes": ("off", "a crash of the machine can corrupt the database"),
    "synchronous_commit": ("off", "a crash can lose jobs, claims and results that were acknowledged"),
    "autovacuum": ("off", "the hot tables grow with every job, and claims get slower"),
    "track_counts": ("off", "autovacuum does not notice that tables need it"),
    "default_transaction_read_only": ("on", "nothing can be enqueued, claimed or finished"),
}


async def check_server_version(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    version = connection.get_server_version().major
    if not OLDEST_SERVER <= version <= NEWEST_SERVER:
        is_old = version < OLDEST_SERVER
        yield Finding(
            level="problem" if is_old else "notice",
            check="server_version",
            subject=f"PostgreSQL {version}",
            what=f"this version of Fenceline was tested on PostgreSQL {OLDEST_SERVER} to {NEWEST_SERVER}",
            do="upgrade the server" if is_old else "look for a newer version of Fenceline",
        )


async def check_settings(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    rows = await connection.fetch(
        "select name, setting, source from pg_settings where name = any ($1::text[])", list(SETTINGS)
    )
    for row in rows:
        bad, what = SETTINGS[row["name"]]
        if row["setting"] == bad:
            yield Finding(
                check="setting",
                subject=row["name"],
                what=f"{row['name']} is {row['setting']} (set by: {row['source']}): {what}",
                do=f"switch it {'off' if row['setting'] == 'on' else 'on'}, for the server and for whatever role or "
                "database sets it, then reload",
            )
    # The workers' role may have other settings than this session.
    for row in await connection.fetch(
        """
        select s.setrole::regrole::text as role, setting
        from pg_db_role_setting s cross join unnest(s.setconfig) setting
        where setting in ('synchronous_commit=off', 'default_transaction_read_only=on') and s.setrole <> 0
          and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
        """
    ):
        name = row["setting"].partition("=")[0]
        yield Finding(
            check="setting",
            subject=f"{name} of role {row['role']}",
            what=f"the role has {row['setting']}: {SETTINGS[name][1]}",
            do=f"alter role {row['role']} reset {name};",
        )
    if await connection.fetchval("select pg_is_in_recovery()"):
        yield Finding(
            check="setting",
            subject="standby",
            what="this server is a standby: nothing can be written",
            do="connect to the primary",
        )


async def check_isolation(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    """Our own sessions ask for READ COMMITTED, but not behind a pooler, and not in transactions of users."""
    for row in await connection.fetch(
        """
        select case when s.setrole = 0 then 'database ' || current_database()
                    when s.setdatabase = 0 then 'role ' || s.setrole::regrole
                    else 'role ' || s.setrole::regrole || ' in database ' || current_database() end as subject,
               split_part(setting, '=', 2) as level
        from pg_db_role_setting s cross join unnest(s.setconfig) setting
        where setting like 'default_transaction_isolation=%' and setting not like '%=read committed'
          and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
        union all
        select 'the server', setting from pg_settings
        where name = 'default_transaction_isolation' and setting <> 'read committed'
          and source in ('configuration file', 'command line')
        """
    ):
        yield Finding(
            level="notice",
            check="isolation",
            subject=row["subject"],
            what=f"transactions are {row['level'].upper()} by default: our own sessions ask for READ COMMITTED, but "
            "behind a pooler they cannot, and refuse to start; enqueues in your transactions may fail with 40001",
            do="set default_transaction_isolation to 'read committed' there, if a pooler stands between",
        )


async def check_replication(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    if await connection.fetchval(
        "select exists (select from pg_stat_replication) and current_setting('synchronous_standby_names') = ''"
    ):
        yield Finding(
            level="notice",
            check="replication",
            subject="synchronous_standby_names",
            what="standbys follow asynchronously: a failover can lose the last commits, acknowledged jobs among them",
            do="set synchronous_standby_names, if that is not acceptable",
        )


async def check_dead_rows(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    for row in await connection.fetch(
        """
        select s.relname, s.n_dead_tup, s.n_live_tup, s.last_autovacuum,
               exists (select from unnest(c.reloptions) o
                       where o in ('autovacuum_enabled=off', 'autovacuum_enabled=false')) as switched_off
        from pg_stat_user_tables s join pg_class c on c.oid = s.relid where s.schemaname = 'fenceline'
        """
    ):
        if row["switched_off"]:
            yield Finding(
                check="vacuum",
                subject=row["relname"],
                what="autovacuum is switched off for this table",
                do=f"alter table fenceline.{row['relname']} reset (autovacuum_enabled);",
            )
        if row["n_dead_tup"] > max(limits.dead_rows, row["n_live_tup"]):
            vacuumed = row["last_autovacuum"]
            since = "never" if vacuumed is None else f"at {vacuumed:%Y-%m-%d %H:%M}"
            yield Finding(
                check="dead_rows",
                subject=row["relname"],
                what=f"{row['n_dead_tup']:,} dead rows, {row['n_live_tup']:,} live ones; last autovacuum: {since}",
                do="end what pins the vacuum horizon, if anything is reported about it; then "
                f"`vacuum fenceline.{row['relname']}`",
            )


#: The classes of our advisory locks (`sql/README.md`), and what stands still while one is held.
ADVISORY_LOCKS = {
    1179926085: "claims of a lane",
    1179926086: "jobs with a key",
    1179926088: "handlers that wait for a lock",
    1179926089: "changes of a schedule",
    1179926087: "partitions and retention",
    1179926090: "filtered streams",
    1178947139: "migrations",
}


async def check_advisory_locks(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """Whoever may connect can take one of our locks, by mistake or not. Our own hold it for one transaction only."""
    for row in await connection.fetch(
        """
        select l.classid::bigint as class, l.pid, a.usename, a.application_name, a.state,
               extract(epoch from clock_timestamp() - coalesce(a.xact_start, a.state_change))::float8 as seconds
        from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where l.granted and l.locktype = 'advisory' and l.objsubid = 2 and l.classid::bigint = any($1::bigint[])
          and l.database = (select oid from pg_database where datname = current_database())
          and coalesce(a.xact_start, a.state_change) <= clock_timestamp() - make_interval(secs => $2)
        order by l.pid
        """,
        list(ADVISORY_LOCKS),
        limits.patience_seconds,
    ):
        yield Finding(
            check="advisory_lock",
            subject=f"pid {row['pid']}",
            what=f"a session of {row['usename']} ({row['application_name'] or 'unnamed'}, {row['state']}) has kept a "
            f"lock of Fenceline's for {row['seconds']:.0f} s: {ADVISORY_LOCKS[row['class']]} stand still",
            do=f"end it where it was started, or: select pg_terminate_backend({row['pid']});",
        )


async def check_horizon(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """What keeps vacuum from removing dead rows."""
    for row in await connection.fetch(
        """
        select pid, usename, application_name, state, backend_type, left(query, 200) as query,
               extract(epoch from clock_timestamp() - coalesce(xact_start, state_change))::float8 as seconds
        from pg_stat_activity
        where pid <> pg_backend_pid() and (datname = current_database() or backend_type = 'walsender')
          and backend_type <> 'autovacuum worker'
          and (backend_xmin is not null or backend_xid is not null)
          and coalesce(xact_start, state_change) <= clock_timestamp() - make_interval(secs => $1)
        order by xact_start
        """,
        limits.patience_seconds,
    ):
        yield Finding(
            check="horizon",
            subject=f"pid {row['pid']}",
            what=f"a transaction of {row['usename']} ({row['application_name'] or row['backend_type']}, "
            f"{row['state']}) has been open for {row['seconds']:.0f} s and pins the vacuum horizon; "
            f"query: {row['query']}",
            do=f"end it where it was started, or: select pg_terminate_backend({row['pid']});",
        )
    for row in await connection.fetch(
        """
        select gid, quote_literal(gid) as quoted, owner,
               extract(epoch from clock_timestamp() - prepared)::float8 as seconds
        from pg_prepared_xacts
        where database = current_database() and prepared <= clock_timestamp() - make_interval(secs => $1)
        """,
        limits.patience_seconds,
    ):
        yield Finding(
            check="horizon",
            subject=f"prepared transaction {row['gid']}",
            what=f"prepared by {row['owner']} {row['seconds']:.0f} s ago and never ended: it pins the vacuum horizon",
            do=f"commit prepared {row['quoted']}; or rollback prepared {row['quoted']};",
        )
    for row in await connection.fetch(
        "select slot_name, slot_type from pg_replication_slots where not active and (xmin is not null "
        "or (catalog_xmin is not null and database = current_database()))"
    ):
        yield Finding(
            check="horizon",
            subject=f"replication slot {row['slot_name']}",
            what=f"nobody uses this {row['slot_type']} slot, and it pins the vacuum horizon",
            do=f"start its consumer, or: select pg_drop_replication_slot('{row['slot_name']}');",
        )


async def check_notifications(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    usage = await connection.fetchval("select pg_notification_queue_usage()")
    if usage > limits.notification_queue:
        yield Finding(
            check="notification_queue",
            subject="pg_notification_queue_usage()",
            what=f"{usage:.4%} of the notification queue is used: when it is full, enqueues that notify fail",
            do="end the sessions that listen and do not read, or are idle in transaction (see the other findings)",
        )


async def check_listeners(connection: Connection, limits: Limits) -> AsyncIterator[Finding]:
    """Sessions that keep the server from discarding notifications."""
    stuck = await _writing_while_idle(connection)
    if stuck:
        # It may just have been writing.
        await asyncio.sleep(0.5)
        stuck &= await _writing_while_idle(connection)
    for pid, name in sorted(stuck):
        yield Finding(
            check="stuck_listener",
            subject=f"pid {pid}",
            what=f"session {name!r} listens and has stopped reading what is sent to it",
            do=f"restart that client, or: select pg_terminate_backend({pid});",
        )
    for row in await connection.fetch(
        """
        select pid, usename, application_name, left(query, 200) as query,
               extract(epoch from clock_timestamp() - state_change)::float8 as seconds
        from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'
          and backend_xmin is null and backend_xid is null
          and state_change <= clock_timestamp() - make_interval(secs => $1)
        """,
        limits.patience_seconds,
    ):
        yield Finding(
            check="idle_in_transaction",
            subject=f"pid {row['pid']}",
            what=f"{row['usename']} ({row['application_name']}) has been idle in a transaction for "
            f"{row['seconds']:.0f} s: it may hold locks, and if it listens, notifications pile up; "
            f"last query: {row['query']}",
            do=f"end the transaction where it was started, or: select pg_terminate_backend({row['pid']});",
        )


async def _writing_while_idle(connection: Connection) -> set[tuple[int, str]]:
    # An idle session has nothing to write but notifications.
    rows = await connection.fetch(
        "select pid, application_name from pg_stat_activity "
        "where datname = current_database() and state = 'idle' and wait_event = 'ClientWrite'"
    )
    return {(row["pid"], row["application_name"]) for row in rows}


async def check_visibility(connection: Connection, _limits: Limits) -> AsyncIterator[Finding]:
    if not await connection.fetchval("select pg_has_role('pg_read_all_stats', 'usage')"):
        role = await connection.fetchval("select current_user")
        yield Finding(
            level="notice",
            check="visibility",
            subject=str(role),
            what="this role cannot see other roles' sessions: who pins the vacuum horizon may stay unknown",
            do=f"grant pg_monitor to {role};",
        )
