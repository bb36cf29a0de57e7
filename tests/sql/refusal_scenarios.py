"""Workers of two versions side by side: jobs whose args one of them does not take are run by the other."""

import json
from typing import Any

from tests.sql.sessions import Attempt, Connect, Connection, claim, finish, set_lane, status

OLD = {"work 0a": {"takes": {"path": True, "chunk": False}, "extra": False}}
NEW = {"work 0b": {"takes": {"path": True, "depth": False}, "extra": False}}
SAME_NAMES = {"work 0c": {"takes": {"path": True, "chunk": False}, "extra": False}}


async def sign_on(connection: Connection, signatures: Any, **options: Any) -> int:
    given = ", ".join(f"p_{name} => ${n}" for n, name in enumerate(options, start=2))
    sql = f"select fenceline.declare_signatures(fenceline.register_worker('w', 600{', ' if given else ''}{given}), $1)"
    worker = await connection.fetchval(sql, json.dumps(signatures), *options.values())
    assert isinstance(worker, int)
    return worker


async def enqueue(connection: Connection, lane: str = "default", **args: Any) -> int:
    sql = "select job_id from fenceline.enqueue('work', $1, $2)"
    job = await connection.fetchval(sql, json.dumps(args), json.dumps({"lane": lane}))
    assert isinstance(job, int)
    return job


async def refuse(connection: Connection, attempt: Attempt) -> None:
    await connection.execute(
        "select fenceline.finish_attempts(array[$1::bigint], array[$2::uuid], array['refused'],"
        ' p_errors => array[\'{"code": "invalid_args", "message": "chunk: not known"}\'::jsonb])',
        attempt.job_id,
        attempt.attempt_id,
    )


async def code(connection: Connection, job: int) -> str:
    return str(await connection.fetchval("select fenceline.get_job($1) -> 'error' ->> 'code'", job))


async def a_refused_job_goes_to_whom_it_fits(connect: Connect) -> None:
    """In every sort of claim; and not to the one who refused it, however often that one asks."""
    db = await connect()
    await set_lane(db, "fair", fair=True)
    old, new = await sign_on(db, OLD), await sign_on(db, NEW)
    bound = await sign_on(db, NEW, tenant="default")
    twin = await sign_on(db, NEW)
    scans = "select count(*) from fenceline.claim_jobs($1, $2, 5, p_floor_priorities => $3, p_floor_seqs => $4)"
    for lane in ("default", "fair"):
        job = await enqueue(db, lane=lane, path="a", chunk=1)
        (attempt,) = await claim(db, new, lane=lane)
        await refuse(db, attempt)
        assert await status(db, job) == "queued"
        for worker in (new, twin, bound):
            assert await claim(db, worker, lane=lane) == []
            for floors in (None, None), ([0], [0]), ([5], [0]), ([-5], [0]):
                for _ in range(2):  # the first may be the one that looks below the bounds
                    assert await db.fetchval(scans, worker, lane, *floors) == 0
        (again,) = await claim(db, old, lane=lane)
        assert (again.job_id, again.number) == (job, 1), "and the attempt is refunded"
        await finish(db, again)
        assert await status(db, job) == "succeeded"
    job = await enqueue(db, path="a", chunk=1)
    (attempt,) = await claim(db, new)
    await refuse(db, attempt)
    (attempt,) = await claim(db, old)
    await db.execute("select fenceline.report_crash($1)", old)
    assert await db.fetchval("select count(*) from fenceline.claim_jobs($1, p_alone => true)", new) == 0


async def a_job_that_nobody_takes_fails(connect: Connect) -> None:
    db = await connect()
    new = await sign_on(db, NEW)
    job = await enqueue(db, path="a", chunk=1)
    (attempt,) = await claim(db, new)
    await refuse(db, attempt)
    assert (await status(db, job), await code(db, job)) == ("failed", "invalid_args")
    # Nor one who does not take it by the names of its args, serves another lane, or whose lease is over.
    await sign_on(db, {"work 0d": {"takes": {"chunk": True, "path": True, "must": True}, "extra": False}})
    await sign_on(db, {"work 0e": {"takes": {"path": True}, "extra": False}})
    await sign_on(db, OLD, lanes=["interactive"])
    await sign_on(db, OLD, kinds=["other"])
    gone = await sign_on(db, OLD)
    await db.execute("update fenceline.worker set lease_until = fenceline.clock() - interval '1 s' where id = $1", gone)
    job = await enqueue(db, path="a", chunk=1)
    (attempt,) = await claim(db, new)
    await refuse(db, attempt)
    assert (await status(db, job), await code(db, job)) == ("failed", "invalid_args")
    # One that ignores what it does not know, and one of before, who has said nothing, may.
    for other in ({"work 0f": {"takes": {"path": True}, "extra": True}}, None):
        taker = await sign_on(db, other)
        job = await enqueue(db, path="a", chunk=1)
        (attempt,) = await claim(db, new)
        await refuse(db, attempt)
        (attempt,) = await claim(db, taker)
        assert attempt.job_id == job
        await finish(db, attempt)
        await db.execute("select fenceline.stop_worker($1)", taker)


async def who_refused_is_remembered_until_all_have(connect: Connect) -> None:
    """Two versions whose parameters have the same names: only trying tells."""
    db = await connect()
    first, second = await sign_on(db, OLD), await sign_on(db, SAME_NAMES)
    job = await enqueue(db, path="a")
    (attempt,) = await claim(db, first)
    await refuse(db, attempt)
    assert await claim(db, first) == []
    (attempt,) = await claim(db, second)
    await refuse(db, attempt)
    assert (await status(db, job), await code(db, job)) == ("failed", "invalid_args")
    assert await db.fetchval("select count(*) from fenceline.refusal") == 0


async def a_job_whose_last_taker_goes_fails_after_a_while(connect: Connect) -> None:
    db = await connect()
    old, new = await sign_on(db, OLD), await sign_on(db, NEW)
    jobs = [await enqueue(db, path="a", chunk=1) for _ in range(2)]
    for attempt in await claim(db, new, limit=2):
        await refuse(db, attempt)
    (attempt,) = await claim(db, old)
    await finish(db, attempt)
    await db.execute("select fenceline.stop_worker($1)", old)
    await db.execute("select fenceline.maintain(0)")
    assert await status(db, jobs[1]) == "queued", "it may be restarted"
    await db.execute("update fenceline.refusal set refused_at = refused_at - interval '2 minutes'")
    back = await sign_on(db, OLD)
    await db.execute("select fenceline.maintain(0)")
    assert await status(db, jobs[1]) == "queued", "it was"
    assert await db.fetchval("select count(*) from fenceline.refusal") == 1, "what has ended is forgotten"
    await db.execute("select fenceline.stop_worker($1)", back)
    await db.execute("select fenceline.maintain(0)")
    assert (await status(db, jobs[1]), await code(db, jobs[1])) == ("failed", "invalid_args")
    assert await db.fetchval("select count(*) from fenceline.refusal") == 0


async def refused_by_all(connection: Connection, count: int) -> list[int]:
    """Jobs that the only worker has refused a while ago, and that the next look should see fail."""
    old, new = await sign_on(connection, OLD, kinds=["work"]), await sign_on(connection, NEW, kinds=["work"])
    jobs = [await enqueue(connection, path="a", chunk=1) for _ in range(count)]
    for attempt in await claim(connection, new, limit=count):
        await refuse(connection, attempt)
    await connection.execute("select fenceline.stop_worker($1)", old)
    await connection.execute("update fenceline.refusal set refused_at = refused_at - interval '2 minutes'")
    return jobs


async def those_that_wait_keep_no_other_from_its_turn(connect: Connect) -> None:
    """A thousand that were refused earlier, of a kind that nobody knows now: for them all is still open."""
    db = await connect()
    (job,) = await refused_by_all(db, 1)
    await db.execute(
        "insert into fenceline.refusal (job_id, signatures, refused_at) "
        "select unnest(job_ids), '{x}', now() - interval '3 minutes' "
        "from fenceline.enqueue_many('gone', array_fill(cast('{}' as json), array[1000]))"
    )
    for _ in range(10):
        await db.execute("select fenceline.maintain(0)")
    assert await status(db, job) == "failed"
    assert await db.fetchval("select count(*) from fenceline.ready") == 1000


async def open_change_of_a_refused_job_holds_up_no_other(connect: Connect) -> None:
    user, db = await connect(), await connect()
    held, free = await refused_by_all(db, 2)
    blocked = "select fenceline.maintain(0) ->> 'blocked'"
    async with user.transaction():
        await user.execute("select fenceline.reprioritise_job($1, 3)", held)
        assert await db.fetchval(blocked) == "[]"
        assert [await status(db, job) for job in (held, free)] == ["queued", "failed"]
    assert await db.fetchval(blocked) == "[]"
    assert await status(db, held) == "failed"


REFUSAL_SCENARIOS = (
    a_refused_job_goes_to_whom_it_fits,
    a_job_that_nobody_takes_fails,
    who_refused_is_remembered_until_all_have,
    a_job_whose_last_taker_goes_fails_after_a_while,
    those_that_wait_keep_no_other_from_its_turn,
    open_change_of_a_refused_job_holds_up_no_other,
)
