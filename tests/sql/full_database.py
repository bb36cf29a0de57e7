"""A database at real size, filled directly: 1,000,000 finished jobs of the last days and 1,000,000 queued ones.

Every filter of a list (kind, lane, tenant, label) has the same shades: `common` (70 %), `usual` (30 %), and the
rare `rare_old`, `rare_new` (50 neighbours each) and `rare_spread` (50 in all, one in 20,000). The queued jobs are
newer and `common` all: whoever looks for another shade has to get past them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median_low
from typing import Any

import psycopg

FINISHED = 1_000_000
QUEUED = 1_000_000
DAYS = 5

# As if the days had gone by: the clock is set back while the partitions are made.
PARTITIONS_SQL = f"""
create or replace function fenceline.clock() returns timestamptz language sql volatile parallel safe as
  $$ select clock_timestamp() - interval '{DAYS} days' $$;
select fenceline.create_partitions({DAYS + 2});
create or replace function fenceline.clock() returns timestamptz language sql volatile parallel safe as
  $$ select clock_timestamp() $$;
"""

# Nobody vacuums or analyses behind the tests' back: each says which statistics it meets.
QUIET_SQL = """
do $$
declare
  v_table regclass;
begin
  for v_table in
    select c.oid from pg_class c where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'r'
  loop
    execute format('alter table %s set (autovacuum_enabled = off)', v_table);
  end loop;
end $$;
"""

# The low bits of an id count the jobs. A block in the middle failed altogether.
FINISHED_SQL = f"""
insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, labels, args)
select fenceline.id_at(now() - interval '1 hour' - ({FINISHED} - n.i) * interval '{DAYS} days' / {FINISHED}) + n.i,
       0, 3, s.shade, s.shade, s.shade, jsonb_build_object('team', s.shade),
       '{{"path": "s3://bucket/some/where/in/the/archive", "number": 12345}}'
from generate_series(1, {FINISHED}) n(i)
cross join lateral (select case when n.i between 1001 and 1050 then 'rare_old'
                                when n.i > {FINISHED} - 50 then 'rare_new'
                                when n.i % 20000 = 7 then 'rare_spread'
                                when n.i % 10 < 7 then 'common' else 'usual' end as shade) s;
insert into fenceline.history (job_id, ended_at, token, claimed_at, worker_id, attempt_id, number, final, outcome)
select j.id, fenceline.id_time(j.id) + interval '1 second', 4294967297, fenceline.id_time(j.id), 1,
       gen_random_uuid(), 1, true,
       case when n.i % 20000 = 11 then 'cancelled'
            when n.i between 300000 and 320000 or n.i % 1000 = 3 then 'failed'
            when n.i between 2001 and 2060 then 'succeeded_with_errors' else 'succeeded' end
from fenceline.job j cross join lateral (select j.id & 4194303 as i) n;
"""

QUEUED_SQL = f"""
with made as (
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args)
  select fenceline.id_at(now() - interval '10 minutes') + {FINISHED} + i, (i % 3)::smallint, 3, 'common', 'default',
         'common', '{{"path": "s3://bucket/some/where/in/the/archive", "number": 12345}}'
  from generate_series(1, {QUEUED}) i
  returning id, priority, lane, kind, tenant
)
insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant)
select id, id, priority, lane, kind, tenant from made;
"""

# What autovacuum does to tables that only grow: it summarises the range indexes and cleans the pending lists of GIN.
VACUUM_SQL = "vacuum fenceline.job, fenceline.history, fenceline.ready"

# Statistics as they are before the first ANALYZE (-1), or as the ANALYZE of an empty table leaves them (0).
FORGET_STATISTICS_SQL = """
with forgotten as (
  delete from pg_statistic where starelid in (
    select oid from pg_class where relnamespace = 'fenceline'::regnamespace and relkind in ('r', 'p', 'i', 'I')))
update pg_class set relpages = 0, reltuples = {}, relallvisible = 0
where relnamespace = 'fenceline'::regnamespace and relkind in ('r', 'i');
"""
STATISTICS = {
    "never analysed": FORGET_STATISTICS_SQL.format(-1),
    "analysed while empty": FORGET_STATISTICS_SQL.format(0),
    "fresh": "analyze fenceline.job, fenceline.history, fenceline.ready, fenceline.running",
}


def fill(connection: psycopg.Connection) -> None:
    run(connection, "set synchronous_commit = off")
    for sql in (PARTITIONS_SQL, QUIET_SQL, FINISHED_SQL, QUEUED_SQL, VACUUM_SQL):
        run(connection, sql)


def run(connection: psycopg.Connection, sql: str, *parameters: object) -> list[Any]:
    """Rows of a statement that was put together from this project's own texts."""
    cursor = connection.execute(sql.encode(), parameters or None)
    return cursor.fetchall() if cursor.description else []


def touched(connection: psycopg.Connection, sql: str, *parameters: object) -> int:
    """Pages that a statement touches, those of the statements inside its functions included."""
    plan = run(connection, f"explain (analyze, buffers, timing off, format json) {sql}", *parameters)[0][0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@contextmanager
def rolled_back(connection: psycopg.Connection) -> Iterator[None]:
    with connection.transaction(force_rollback=True):
        yield


def usually(connection: psycopg.Connection, measure: Callable[[], int]) -> int:
    """The middle one of five measurements, each rolled back: the first fills the session's caches, and whoever migrates
    another database of the server meanwhile has them dropped.
    """
    found = []
    for _ in range(5):
        with rolled_back(connection):
            found.append(measure())
    return median_low(found)


def seq_scans(connection: psycopg.Connection) -> int:
    """Sequential scans of partitions of job and history that are not nearly empty, by this session so far."""
    sql = """
      select coalesce(sum(seq_scan), 0)::integer from pg_stat_xact_user_tables
      where schemaname = 'fenceline' and relname ~ '^(job|history)_' and pg_relation_size(relid) > 80000
    """
    return int(run(connection, sql)[0][0])
