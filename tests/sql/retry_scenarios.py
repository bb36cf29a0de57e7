"""Retries of jobs that wait for each other."""

from tests.sql.sessions import Connect, Connection, claim_one, enqueue, finish, many, refusal, register, status


async def retry(connection: Connection, job_id: int) -> int:
    retried = await connection.fetchval("select job_id from fenceline.retry_job($1)", job_id)
    assert isinstance(retried, int)
    return retried


async def parents(connection: Connection, job_id: int) -> list[int]:
    return list(await connection.fetchval("select after from fenceline.job where id = $1", job_id))


async def retried_workflow_keeps_its_order(connect: Connect) -> None:
    operator, user = await many(connect, 2)
    worker = await register(operator)
    load = await enqueue(operator)
    publish = await enqueue(operator, after=[load])
    await finish(operator, await claim_one(operator, worker), "failed_for_good")
    assert await status(operator, publish) == "cancelled"
    assert await refusal(retry(operator, publish)) == "FL011"  # the load first
    async with user.transaction():
        first = await retry(user, load)
        assert await parents(user, await retry(user, publish)) == [first]
    second = await retry(operator, first) if await end(operator, worker, first) else 0
    again = await retry(operator, publish)
    assert await parents(operator, again) == [second]
    assert await status(operator, again) == "waiting"
    assert await end(operator, worker, second, "succeeded")
    assert await end(operator, worker, again, "succeeded")


async def end(operator: Connection, worker: int, job_id: int, outcome: str = "failed_for_good") -> bool:
    attempt = await claim_one(operator, worker)
    assert attempt.job_id == job_id
    return await finish(operator, attempt, outcome) == "accepted"


async def bulk_retry_takes_parents_first(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    load = await enqueue(operator)
    publish = await enqueue(operator, after=[load])
    await end(operator, worker, load)
    newer = await retry(operator, load)
    await end(operator, worker, newer)
    text = "select changed from fenceline.bulk_jobs('retry', null, null, null, null, false, null, false, $1)"
    assert await operator.fetchval(text, [publish, newer]) == 2
    last, waiter = await operator.fetch("select id, after from fenceline.job where id > $1 order by id", newer)
    assert waiter["after"] == [last["id"]]


async def retry_stands_for_its_job_in_a_group(connect: Connect) -> None:
    operator = await connect()
    worker = await register(operator)
    member = await enqueue(operator, group="g")
    await end(operator, worker, member)
    newer = await retry(operator, member)
    assert await parents(operator, await enqueue(operator, after={"group": "g"})) == [newer]


RETRY_SCENARIOS = (
    retried_workflow_keeps_its_order,
    bulk_retry_takes_parents_first,
    retry_stands_for_its_job_in_a_group,
)
