"""Other isolation levels than READ COMMITTED: a function is right, fails as such a transaction may, or says in one line
that it cannot be.
"""

from functools import partial
from typing import Any

import asyncpg
from tests.sql.lock_scenarios import attempts_of, guard
from tests.sql.schedule_scenarios import first_tick, prepare
from tests.sql.sessions import (
    ISOLATIONS,
    Connect,
    Connection,
    IsolatedPool,
    Step,
    claim,
    claim_one,
    count,
    enqueue,
    finish,
    maintain,
    many,
    refusal,
    register,
    status,
)

OTHERS = ISOLATIONS[1:]
SERIALIZATION_FAILURE = "40001"

#: Functions that count or look again after a lock, with arguments that any of them takes.
COUNTING = {
    "claim_jobs": "1",
    "maintain": "0",
    "sweep": "",
    "upkeep": "0",
    "tidy_up": "0",
    "prune": "",
    "drop_days": "",
    "count_tenants": "0",
    "set_lane": "'default', '{\"slots\": 2}'",
    "delete_lane": "'interactive'",
    "stop_worker": "1",
    "report_crash": "1",
    "report_death": "1, '{}'",
    "take_messages": "'arq'",
    "take_lock": "1, gen_random_uuid(), 'space', 'name', gen_random_uuid()",
    "take_outside_lock": "'default', 'space', 'name', gen_random_uuid(), '{}', 10, 'ann'",
}


async def counting_needs_read_committed(connect: Connect) -> None:
    """However the level was chosen: for one transaction, or as the default of a session, a role or a database."""
    operator = await connect()
    await register(operator)
    for isolation in OTHERS:
        await operator.execute(f"set default_transaction_isolation = '{isolation.replace('_', ' ')}'")
        for function, arguments in COUNTING.items():
            answer = await refusal(operator.execute(f"select fenceline.{function}({arguments})"))
            assert answer == "FL016", f"{function} in {isolation}: {answer}"


async def at_an_old_snapshot(connect: Connect, isolation: IsolatedPool, meanwhile: Step, call: Step) -> object:
    """What `call` answers in a transaction that took its snapshot before `meanwhile` was committed."""
    late, other = await many(connect, 2)
    transaction = late.transaction(isolation=isolation)
    await transaction.start()
    await late.execute("select from fenceline.setting")
    await meanwhile(other)
    try:
        answer = await call(late)
    except asyncpg.PostgresError as error:
        await transaction.rollback()
        return error.sqlstate
    await transaction.commit()
    return answer


async def keys_and_locks_are_unique_at_old_snapshots(connect: Connect) -> None:
    operator = await connect()
    for isolation in OTHERS:
        for option in ("dedupe_key", "idempotency_key", "resource_lock"):
            given: dict[str, Any] = {option: f"of {isolation}"}
            enqueues = partial(enqueue, **given)
            assert await at_an_old_snapshot(connect, isolation, enqueues, enqueues) == SERIALIZATION_FAILURE
    assert await count(operator, "job") == 3 * len(OTHERS)


async def guard_holds_at_old_snapshots(connect: Connect) -> None:
    operator = await connect()
    newer, older = await attempts_of(operator, 2)
    for turn, isolation in enumerate(OTHERS, start=1):
        answer = await at_an_old_snapshot(
            connect,
            isolation,
            partial(guard, attempt=newer, version=10 * turn + 1),
            partial(guard, attempt=older, version=10 * turn),
        )
        assert answer == SERIALIZATION_FAILURE
        assert await guard(operator, older, 10 * turn) is False


async def fan_in_counts_at_old_snapshots(connect: Connect) -> None:
    """The last two of those that a job waits for: it is released once, by whoever comes last."""
    operator = await connect()
    worker = await register(operator)
    for isolation in OTHERS:
        children = [await enqueue(operator, priority=5) for _ in range(2)]
        parent = await enqueue(operator, after=children)
        one, two = await claim(operator, worker, limit=2)
        ends = partial(finish, attempt=two)
        answer = await at_an_old_snapshot(connect, isolation, partial(finish, attempt=one), ends)
        assert answer == SERIALIZATION_FAILURE
        assert await status(operator, parent) == "waiting"
        assert await finish(operator, two) == "accepted"
        attempt = await claim_one(operator, worker, limit=9)
        assert attempt.job_id == parent


async def key_is_freed_at_old_snapshots(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for isolation in OTHERS:
        await enqueue(operator, key="k", priority=9)
        holder = await claim_one(operator, worker)
        following: list[int] = []

        async def park(connection: Connection, parked: list[int] = following) -> None:
            parked.append(await enqueue(connection, key="k"))
            await maintain(connection)

        assert await at_an_old_snapshot(connect, isolation, park, partial(finish, attempt=holder)) == "accepted"
        [attempt] = await claim(operator, worker, limit=9)
        assert [attempt.job_id] == following
        assert await finish(operator, attempt) == "accepted"


async def tick_fires_once_at_old_snapshots(connect: Connect) -> None:
    operator = await prepare(connect)
    for isolation in OTHERS:
        answer = await at_an_old_snapshot(connect, isolation, first_tick, first_tick)
        assert answer in (None, SERIALIZATION_FAILURE)
        assert await count(operator, "job") == 1


async def verbs_look_at_what_is_there_at_old_snapshots(connect: Connect) -> None:
    """The job was claimed after the snapshot: nobody ends or moves it unseen, and no verb looks for it without end."""
    operator = await connect()
    worker = await register(operator)
    verbs = ("cancel_job($1)", "cancel_job($1, p_force => true)", "reprioritise_job($1, 7)")
    for isolation in OTHERS:
        for verb in verbs:
            job = await enqueue(operator)

            async def act(connection: Connection, verb: str = verb, job: int = job) -> None:
                await connection.execute("set local statement_timeout = '10s'")
                await connection.execute(f"select fenceline.{verb}", job)

            answer = await at_an_old_snapshot(connect, isolation, partial(claim_one, worker=worker), act)
            assert answer == SERIALIZATION_FAILURE, verb
            assert await status(operator, job) == "claimed"


ISOLATION_SCENARIOS = (
    counting_needs_read_committed,
    keys_and_locks_are_unique_at_old_snapshots,
    guard_holds_at_old_snapshots,
    fan_in_counts_at_old_snapshots,
    key_is_freed_at_old_snapshots,
    tick_fires_once_at_old_snapshots,
    verbs_look_at_what_is_there_at_old_snapshots,
)
