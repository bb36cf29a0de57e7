"""Schedulers that meet at a tick."""

import asyncio
from datetime import datetime, timedelta
from functools import partial

from tests.sql.clock import START, clock_sql
from tests.sql.sessions import Connect, Connection, count, enqueue, many, overlap, refusal

NOON = datetime.fromisoformat(START)
HOUR = timedelta(hours=1)


async def prepare(connect: Connect) -> Connection:
    """A schedule whose first tick has come, at one o'clock."""
    operator = await connect()
    await operator.execute(clock_sql())
    await operator.execute("""select fenceline.set_schedule('s', '{"kind": "work", "every": 3600}')""")
    await fire(operator, None, until=NOON, ticks=[], following=NOON + HOUR)
    await move_clock(operator, NOON + HOUR)
    return operator


async def fire(
    connection: Connection, expected: datetime | None, *, until: datetime, ticks: list[datetime], following: datetime
) -> int | None:
    revision = await connection.fetchval("select revision from fenceline.schedule")
    made: int | None = await connection.fetchval(
        "select fenceline.fire_schedule('s', $1, $2, $3, $4, $5, $6, $7)",
        revision, expected, until, ticks, ["fire"] * len(ticks), [None] * len(ticks), following,
    )  # fmt: skip
    return made


async def move_clock(connection: Connection, moment: datetime) -> None:
    await connection.execute("update public.test_clock set now = $1", moment)


first_tick = partial(fire, expected=NOON + HOUR, until=NOON + HOUR, ticks=[NOON + HOUR], following=NOON + 2 * HOUR)


async def a_tick_fires_once_while_schedulers_overlap(connect: Connect) -> None:
    operator = await prepare(connect)
    one, other, waited = await overlap(connect, first_tick, first_tick)
    assert (one, other, waited) == (1, None, False)
    assert await count(operator, "job") == await count(operator, "schedule_tick") == 1
    crowd = await many(connect, 8)
    for hour in range(2, 6):
        tick = NOON + hour * HOUR
        await move_clock(operator, tick)
        turn = partial(fire, expected=tick, until=tick, ticks=[tick], following=tick + HOUR)
        answers = await asyncio.gather(*(turn(connection) for connection in crowd))
        assert sorted(answers, key=str) == [1] + [None] * 7
        assert await count(operator, "job") == hour


async def a_late_scheduler_does_not_turn_back_the_next_tick(connect: Connect) -> None:
    """It has read the schedule, slept, and comes when others have gone on."""
    operator = await prepare(connect)
    await first_tick(operator)
    await move_clock(operator, NOON + 2 * HOUR)
    second = NOON + 2 * HOUR
    await fire(operator, second, until=second, ticks=[second], following=second + HOUR)
    await first_tick(await connect())
    assert await operator.fetchval("select next_at from fenceline.schedule") == second + HOUR
    assert await count(operator, "job") == 2


async def a_tick_fires_once_when_the_clock_is_set_back(connect: Connect) -> None:
    """And somebody resumes the schedule then, so that its ticks are counted from before."""
    operator = await prepare(connect)
    await first_tick(operator)
    await move_clock(operator, NOON + HOUR / 2)
    for paused in ("true", "false"):
        await operator.execute("select fenceline.set_schedule('s', $1)", f'{{"paused": {paused}}}')
    await fire(operator, None, until=NOON + HOUR / 2, ticks=[], following=NOON + HOUR)
    await move_clock(operator, NOON + HOUR)
    await first_tick(operator)
    assert await count(operator, "job") == 1


async def a_change_meets_a_fire(connect: Connect) -> None:
    """The scheduler computed with the old timing: what it says about the next tick must not count."""
    operator = await prepare(connect)
    old = await operator.fetchval("select revision from fenceline.schedule")
    await operator.execute("""select fenceline.set_schedule('s', '{"misfire": "all"}')""")
    made = await operator.fetchval(
        "select fenceline.fire_schedule('s', $1, $2, $2, $3, $4, $5, $6)",
        old, NOON + HOUR, [NOON + HOUR], ["fire"], [None], NOON + 2 * HOUR,
    )  # fmt: skip
    assert made is None
    assert await count(operator, "job") == 0


async def a_tick_waits_for_no_open_transaction(connect: Connect) -> None:
    """Somebody has taken the key that its job asks for, and has not committed yet."""
    operator, user, scheduler = await prepare(connect), await connect(), await connect()
    await scheduler.execute("set statement_timeout = '10s'")
    await operator.execute("""update fenceline.schedule set options = '{"dedupe_key": "k"}'""")
    async with user.transaction():
        await enqueue(user, dedupe_key="k")
        assert await refusal(first_tick(scheduler)) == "55P03"
    assert await first_tick(scheduler) == 0
    assert await operator.fetchval("select outcome from fenceline.schedule_tick") == "deduplicated"


async def a_program_starts_beside_an_open_change(connect: Connect) -> None:
    operator, user, program = await many(connect, 3)
    await program.execute("set statement_timeout = '5s'")
    declare = "select fenceline.declare_schedules($1)"
    says = '{"s": {"kind": "work", "every": 3600}}'
    await operator.execute(declare, says)
    async with user.transaction():
        await user.execute("""select fenceline.set_schedule('s', '{"paused": true}')""")
        await program.execute(declare, says)
    await program.execute(declare, says.replace("3600", "60"))
    assert await count(operator, "schedule", "paused and every = 60") == 1


async def two_tenants_create_one_name(connect: Connect) -> None:
    """At the same time: each has a schedule of that name afterwards, and finds its own only."""

    async def create(connection: Connection, tenant: str) -> str:
        settings = '{"kind": "work", "every": 3600}'
        sql = "select fenceline.act_on_schedule('s', 'create', $1, 'ann', $2, $2) ->> 'name'"
        return str(await connection.fetchval(sql, settings, tenant))

    one, other, waited = await overlap(connect, partial(create, tenant="acme"), partial(create, tenant="other"))
    assert (one, other, waited) == ("s", "s", True)
    operator = await connect()
    seen = "select s ->> 'tenant' from fenceline.schedules_in_reach($1, 's') s"
    for tenant in ("acme", "other"):
        assert [row[0] for row in await operator.fetch(seen, tenant)] == [tenant]
    stored = await operator.fetch("select name from fenceline.schedule order by name")
    assert [row["name"] for row in stored] == ["s", "s@other"]
    assert await operator.fetch(seen, "third") == []
