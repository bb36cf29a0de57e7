"""The split layout beside one table whose state is updated in place: both bare, both fenced (docs/adr/0001)."""

from collections.abc import Awaitable, Callable

import asyncpg

from benchmarks import bare, jobs
from benchmarks.measure import Result, Size, Work, alternate
from benchmarks.wal import wal_written

BATCHES = 4

CREATE_SQL = """
create schema single;
create table single.job (
  id bigint primary key,
  seq bigint not null,
  priority smallint not null,
  max_attempts smallint not null,
  kind text not null,
  lane text not null,
  tenant text not null,
  status text not null,
  args json not null,
  token bigint,
  claimed_at timestamptz,
  ended_at timestamptz,
  worker_id integer,
  attempt_id uuid,
  number smallint
);
create index on single.job (lane, priority desc, seq) where status = 'queued';
"""

# $1: JSON texts
ENQUEUE_SQL = """
insert into single.job (id, seq, priority, max_attempts, kind, lane, tenant, status, args)
select fenceline.next_id(), nextval('fenceline.job_id'), 0, 3, 'noop', 'default', 'default', 'queued', a.args
from unnest($1::json[]) a(args)
"""

# $1: how many
CLAIM_SQL = """
update single.job
set status = 'running', token = 1, claimed_at = now(), worker_id = 1, attempt_id = gen_random_uuid(), number = 1
where id = any(array(
  select id from single.job where status = 'queued' and lane = 'default'
  order by lane, priority desc, seq limit $1 for update skip locked))
returning id, attempt_id, kind, tenant, args
"""

# $1: job ids, $2: attempt ids
FINISH_SQL = """
update single.job j set status = 'succeeded', ended_at = now()
from unnest($1::bigint[], $2::uuid[]) g(job_id, attempt_id)
where j.id = any($1) and j.id = g.job_id and j.attempt_id = g.attempt_id
"""


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    await connection.execute(CREATE_SQL)
    await connection.execute("alter table single.job set (autovacuum_enabled = off)")
    results = []
    for args_bytes in (100, 1124):
        results += await compare(connection, args_bytes=args_bytes, rounds=size.rounds(20))
    return results


async def compare(connection: asyncpg.Connection, *, args_bytes: int, rounds: int) -> list[Result]:
    per_round = BATCHES * jobs.BATCH
    args = jobs.args_of(args_bytes)
    # All pages of these jobs are written after the checkpoint: no full-page images below (`wal.py`).
    await connection.execute("vacuum analyze")
    await connection.execute("checkpoint")
    for _ in range(rounds + 1):
        await connection.execute(bare.ENQUEUE_SQL, [args] * per_round)
        await connection.execute(ENQUEUE_SQL, [args] * per_round)
    written = {"split": 0, "single": 0}
    statements = {"split": (bare.CLAIM_SQL, bare.FINISH_SQL), "single": (CLAIM_SQL, FINISH_SQL)}

    async def drain(layout: str) -> None:
        claim, finish = statements[layout]
        before, _ = await wal_written(connection)
        for _ in range(BATCHES):
            rows = await connection.fetch(claim, jobs.BATCH)
            ended = await connection.execute(finish, [row[0] for row in rows], [row[1] for row in rows])
            assert ended.split()[-1] == str(jobs.BATCH)
        written[layout] += (await wal_written(connection))[0] - before

    def prepare(layout: str) -> Callable[[], Awaitable[Work]]:
        async def ready() -> Work:
            return lambda: drain(layout)

        return ready

    for layout in written:
        await drain(layout)
        written[layout] = 0
    split, single, ratio = await alternate(prepare("split"), prepare("single"), rounds=rounds, jobs=per_round)
    total = rounds * per_round
    return [
        Result(
            measurement=f"claim + finish, args of {args_bytes} bytes: split / one table",
            unit="jobs/s",
            ours=split,
            bare=single,
            ratio=ratio,
        ),
        Result(
            measurement=f"its WAL per job, args of {args_bytes} bytes: split / one table",
            unit="B",
            ours=written["split"] / total,
            bare=written["single"] / total,
            ratio=written["split"] / written["single"],
        ),
    ]
