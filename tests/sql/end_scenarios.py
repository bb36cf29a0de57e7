"""Ends of attempts that meet: of two ends one counts, and what comes late changes nothing."""

import json
from functools import partial
from uuid import uuid4

from tests.sql.clock import MOVE_CLOCK, clock_sql
from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim,
    claim_one,
    count,
    end_lease,
    enqueue,
    finish,
    overlap,
    refusal,
    register,
    status,
)

ROUNDS = 5


async def one_claimed(connection: Connection, worker: int, **options: object) -> Attempt:
    await enqueue(connection, **options)
    return await claim_one(connection, worker)


async def force_cancel(connection: Connection, attempt: Attempt) -> object:
    return await connection.fetchval("select fenceline.cancel_job($1, p_force => true)", attempt.job_id)


async def final_rows(connection: Connection, attempt: Attempt) -> int:
    return await count(connection, "history", f"final and job_id = {attempt.job_id}")


async def cancel_and_finish_have_one_winner(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for outcome in ("succeeded", "failed_for_good"):
        for _ in range(ROUNDS):
            attempt = await one_claimed(operator, worker)
            answers = await overlap(
                connect, partial(force_cancel, attempt=attempt), partial(finish, attempt=attempt, outcome=outcome)
            )
            assert answers == ("cancelled", "stale", True)
            assert await status(operator, attempt.job_id) == "cancelled"
            assert await final_rows(operator, attempt) == 1

            attempt = await one_claimed(operator, worker)
            answers = await overlap(
                connect, partial(finish, attempt=attempt, outcome=outcome), partial(force_cancel, attempt=attempt)
            )
            assert answers == ("accepted", "FL011", True)
            assert await status(operator, attempt.job_id) in ("succeeded", "failed")
            assert await final_rows(operator, attempt) == 1


async def cancel_and_claim_have_one_winner(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    job = await enqueue(operator)
    cancel = "select fenceline.cancel_job($1)"
    _, claimed, _ = await overlap(connect, lambda c: c.fetchval(cancel, job), lambda c: claim(c, worker))
    assert claimed == []
    assert await status(operator, job) == "cancelled"

    job = await enqueue(operator)
    claimed, answer, _ = await overlap(connect, lambda c: claim(c, worker), lambda c: c.fetchval(cancel, job))
    assert answer == "claimed", "the handler is asked to stop, and keeps its fence"
    assert await finish(operator, claimed[0], "failed") == "accepted"
    assert await status(operator, job) == "cancelled", "asked to stop, it is not tried again"


async def sweep_and_finish_have_one_winner(connect: Connect) -> None:
    operator = await connect()
    sweep = "select fenceline.sweep()"
    for outcome in ("succeeded", "failed"):
        for _ in range(ROUNDS):
            worker = await register(operator)
            attempt = await one_claimed(operator, worker, max_attempts=9)
            await end_lease(operator, worker)
            answers = await overlap(
                connect, lambda c: c.fetchval(sweep), partial(finish, attempt=attempt, outcome=outcome)
            )
            assert answers == (1, "stale", True)
            assert await status(operator, attempt.job_id) == "queued"
            again = await claim_one(operator, await register(operator))
            assert (again.job_id, again.number) == (attempt.job_id, 2)
            assert again.token > attempt.token
            assert await finish(operator, attempt, outcome) == "stale"
            assert await finish(operator, again) == "accepted"

            worker = await register(operator)
            attempt = await one_claimed(operator, worker, max_attempts=1)
            await end_lease(operator, worker)
            answers = await overlap(
                connect, partial(finish, attempt=attempt, outcome=outcome), lambda c: c.fetchval(sweep)
            )
            assert answers == ("accepted", 0, False), "the sweep waits for nobody"
            assert await final_rows(operator, attempt) == 1


async def two_finishes_of_one_attempt_count_once(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    for outcome in ("succeeded", "failed", "released"):
        attempt = await one_claimed(operator, worker)
        answers = await overlap(
            connect,
            partial(finish, attempt=attempt, outcome=outcome, delay=60),
            partial(finish, attempt=attempt, outcome=outcome, delay=60),
        )
        assert answers == ("accepted", "already", True)
        assert await count(operator, "history", f"job_id = {attempt.job_id}") == 1
        await force_cancel(operator, attempt) if outcome != "succeeded" else None


async def late_writes_change_nothing(connect: Connect) -> None:
    operator = await connect()
    for outcome in ("succeeded", "failed", "released"):
        lost = await register(operator)
        old = await one_claimed(operator, lost)
        await operator.execute("select fenceline.stop_worker($1)", lost)
        new = await claim_one(operator, await register(operator))
        assert (new.job_id, new.number) == (old.job_id, 1), "a released attempt is refunded"
        assert new.attempt_id != old.attempt_id
        assert new.token > old.token, "the token is not"
        forged = Attempt(new.job_id, uuid4(), new.token, new.number)
        for late in (old, forged):
            pair = (late.job_id, late.attempt_id)
            said = "already" if late is old and outcome == "released" else "stale"
            assert await finish(operator, late, outcome) == said
            assert await operator.fetch(
                "select * from fenceline.start_attempts(array[$1::bigint], array[$2::uuid])", *pair
            )
            assert await operator.fetchval("select fenceline.set_progress($1, $2, 'late')", *pair) is False
            assert await operator.fetchval("select fenceline.write_log($1, $2, '[{}]')", *pair) is False
        assert await status(operator, new.job_id) == "claimed"
        assert await finish(operator, new) == "accepted"
        assert await finish(operator, new) == "already"
        assert await finish(operator, new, "failed") == "stale"
        assert await status(operator, new.job_id) == "succeeded"


async def one_batch_may_hold_a_live_and_a_stale_attempt(connect: Connect) -> None:
    operator = await connect()
    lost = await register(operator)
    old = await one_claimed(operator, lost)
    await operator.execute("select fenceline.stop_worker($1)", lost)
    new = await claim_one(operator, await register(operator))
    rows = await operator.fetch(
        "select attempt_id, verdict from fenceline.finish_attempts($1, $2)",
        [old.job_id, new.job_id],
        [old.attempt_id, new.attempt_id],
    )
    assert [tuple(row) for row in rows] == [(old.attempt_id, "stale")]


async def heartbeat_releases_only_what_its_worker_forgot(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    attempt = await one_claimed(operator, worker)
    beat = "select word from fenceline.heartbeat(array[$1::integer], $2)"
    assert await operator.fetch(beat, worker, []) == []
    assert await status(operator, attempt.job_id) == "claimed", "its claim may still be on its way to the worker"
    assert await operator.fetch(beat, worker, [attempt.attempt_id]) == []
    assert await status(operator, attempt.job_id) == "claimed"
    assert await operator.fetch(beat, worker, []) == []
    assert await status(operator, attempt.job_id) == "queued"
    [row] = await operator.fetch(beat, worker, [attempt.attempt_id])
    assert row["word"] == "stale"


async def third_death_alone_is_quarantine(connect: Connect) -> None:
    operator = await connect()
    job = await enqueue(operator, max_attempts=2)
    alone = "select count(*) from fenceline.claim_jobs($1, p_alone => $2)"
    for death in range(3):
        worker = await register(operator)
        assert await operator.fetchval(alone, worker, death == 0) == 0
        assert await operator.fetchval(alone, worker, death > 0) == 1
        await operator.execute("select fenceline.report_crash($1)", worker)
    error = await operator.fetchval("select error ->> 'code' from fenceline.jobs where job_id = $1", job)
    assert (await status(operator, job), error) == ("failed", "quarantined")


async def call_with(connection: Connection, sql: str, worker: int) -> object:
    return await connection.fetchval(sql, worker)


REPORT_DEATH = "select fenceline.report_death($1, '{}')"


async def end_of_a_process_waits_for_its_claim_in_flight(connect: Connect) -> None:
    """The process died in the middle of its claim: what that brings is given back too, whoever tells of the end."""
    operator = await connect()
    for statement in (REPORT_DEATH, "select fenceline.report_crash($1)", "select fenceline.stop_worker($1)"):
        worker = await register(operator)
        job = await enqueue(operator)
        claimed, _, waited = await overlap(
            connect, partial(claim, worker=worker), partial(call_with, sql=statement, worker=worker)
        )
        assert ([attempt.job_id for attempt in claimed], waited) == ([job], True)
        assert await status(operator, job) == "queued"
        assert await count(operator, "running") == 0
        await operator.execute("select fenceline.cancel_job($1)", job)


async def leases_are_kept_beside_a_row_that_is_held(connect: Connect) -> None:
    """An open transaction around one worker costs its siblings nothing; that worker is neither renewed nor lost."""
    operator = await connect()
    held, sibling = await register(operator), await register(operator)
    await operator.execute("update fenceline.worker set lease_until = now() + interval '1 second'")
    text = "select worker_id, word from fenceline.keep_leases(array[$1::integer, $2::integer])"
    _, words, waited = await overlap(
        connect,
        lambda one: one.fetchval("select fenceline.stop_worker($1)", held),
        lambda two: two.fetch(text, held, sibling),
    )
    assert ([tuple(row) for row in words], waited) == ([(held, "busy")], False)
    renewed = "stopped_at is null and lease_until > now() + interval '1 minute'"
    assert await count(operator, "worker", f"{renewed} and id = {sibling}") == 1
    assert [tuple(row) for row in await operator.fetch(text, held, sibling)] == [(held, "lost")]


async def death_is_reported_beside_an_attempt_that_is_held(connect: Connect) -> None:
    """An operator's open cancel of one job holds up no other job of the dead process."""
    operator = await connect()
    worker = await register(operator)
    jobs = [await enqueue(operator) for _ in range(3)]
    await claim(operator, worker, limit=3)
    report = "select fenceline.report_death($1, '{}')::text"
    _, answer, waited = await overlap(
        connect,
        lambda one: one.fetchval("select fenceline.cancel_job($1)", jobs[0]),
        lambda two: two.fetchval(report, worker),
    )
    told = json.loads(answer)
    assert (told["ended"], told["left"], waited) == (2, 1, False)
    assert [await status(operator, job) for job in jobs] == ["claimed", "queued", "queued"]
    told = json.loads(await operator.fetchval(report, worker))
    assert (told["ended"], told["left"]) == (1, 0)
    assert await status(operator, jobs[0]) == "cancelled"
    assert await count(operator, "worker", f"id = {worker} and stopped_at is null") == 0


async def sign_off_goes_on_beside_an_attempt_that_is_held(connect: Connect) -> None:
    operator, user, worker = await connect(), await connect(), await connect()
    await worker.execute("set statement_timeout = '10s'")
    worker_id = await register(operator)
    held, free = [await one_claimed(operator, worker_id) for _ in range(2)]
    gone = "select stopped_at is not null from fenceline.worker"
    async with user.transaction():
        await user.execute("select fenceline.cancel_job($1)", held.job_id)
        assert await worker.fetchval("select fenceline.stop_worker($1)", worker_id) == 1
        assert await status(operator, free.job_id) == "queued"
        assert not await operator.fetchval(gone)
        assert await refusal(claim_one(operator, worker_id)) == "FL015"
    assert await operator.fetchval("select fenceline.sweep()") == 1
    assert await status(operator, held.job_id) == "cancelled"
    assert await operator.fetchval(gone)


async def only_what_has_not_started_is_refunded(connect: Connect) -> None:
    """Of jobs with one attempt, lost with their worker: those whose start was not told, by a worker that tells."""
    operator = await connect()
    for tells, starts, expected in ((True, False, "queued"), (True, True, "failed"), (False, False, "failed")):
        worker = await register(operator)
        if tells:
            await operator.execute("select fenceline.promise_starts($1)", worker)
        attempt = await one_claimed(operator, worker, max_attempts=1)
        if starts:
            text = "select * from fenceline.start_attempts(array[$1::bigint], array[$2::uuid])"
            await operator.execute(text, attempt.job_id, attempt.attempt_id)
        await end_lease(operator, worker)
        assert await operator.fetchval("select fenceline.sweep()") == 1
        assert await status(operator, attempt.job_id) == expected, (tells, starts)
        await operator.execute("select fenceline.cancel_job($1) where $2", attempt.job_id, expected == "queued")


async def expired_job_is_not_started(connect: Connect) -> None:
    operator = await connect()
    await operator.execute(clock_sql())
    job = await enqueue(operator, expires_at="2030-01-01T12:00:05+00:00")
    await operator.execute(MOVE_CLOCK.replace("%s", "6"))
    assert await claim(operator, await register(operator)) == []
    assert await status(operator, job) == "cancelled"


END_SCENARIOS = (
    sign_off_goes_on_beside_an_attempt_that_is_held,
    cancel_and_finish_have_one_winner,
    cancel_and_claim_have_one_winner,
    sweep_and_finish_have_one_winner,
    two_finishes_of_one_attempt_count_once,
    late_writes_change_nothing,
    one_batch_may_hold_a_live_and_a_stale_attempt,
    heartbeat_releases_only_what_its_worker_forgot,
    third_death_alone_is_quarantine,
    end_of_a_process_waits_for_its_claim_in_flight,
    leases_are_kept_beside_a_row_that_is_held,
    death_is_reported_beside_an_attempt_that_is_held,
    only_what_has_not_started_is_refunded,
    expired_job_is_not_started,
)
