"""A signal and the wait for it, written at the same time by sessions that do not see each other."""

from tests.sql.sessions import (
    Attempt,
    Connect,
    Connection,
    claim_one,
    enqueue,
    finish,
    maintain,
    many,
    register,
    status,
)


async def begun(connection: Connection) -> Attempt:
    """An attempt whose handler has come to its wait."""
    await enqueue(connection)
    attempt = await claim_one(connection, await register(connection))
    await connection.execute("select fenceline.begin_wait($1, $2, 'w', 'go')", attempt.job_id, attempt.attempt_id)
    return attempt


async def a_signal_that_commits_after_the_wait_is_heard(connect: Connect) -> None:
    sender, worker = await many(connect, 2)
    attempt = await begun(worker)
    transaction = sender.transaction()
    await transaction.start()
    await sender.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    assert await finish(worker, attempt, "waiting") == "accepted"
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "waiting"
    await transaction.commit()
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "queued"


async def a_wait_that_commits_after_its_signal_hears_it(connect: Connect) -> None:
    sender, worker = await many(connect, 2)
    attempt = await begun(worker)
    transaction = worker.transaction()
    await transaction.start()
    assert await finish(worker, attempt, "waiting") == "accepted"
    await sender.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    await maintain(sender)
    await transaction.commit()
    await maintain(sender)
    assert await status(sender, attempt.job_id) == "queued"


async def a_job_that_somebody_holds_is_looked_at_again(connect: Connect) -> None:
    operator, worker = await many(connect, 2)
    attempt = await begun(worker)
    assert await finish(worker, attempt, "waiting") == "accepted"
    transaction = operator.transaction()
    await transaction.start()
    await operator.execute("select fenceline.cancel_job($1)", attempt.job_id)
    await worker.execute("select fenceline.signal_job($1, 'go')", attempt.job_id)
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "waiting"
    await transaction.rollback()
    await maintain(worker)
    assert await status(worker, attempt.job_id) == "queued"


WAIT_SCENARIOS = (
    a_signal_that_commits_after_the_wait_is_heard,
    a_wait_that_commits_after_its_signal_hears_it,
    a_job_that_somebody_holds_is_looked_at_again,
)
